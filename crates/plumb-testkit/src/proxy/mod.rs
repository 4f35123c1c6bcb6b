//! A proxy before the API server that makes faults on demand and counts requests.
//!
//! It listens on plain HTTP on 127.0.0.1 and speaks to the API server with the rights of the
//! kubeconfig it was given, so a client needs nothing but its address ([`FaultProxy::kubeconfig`]).
//! Bodies are streamed both ways: a watch through it behaves like a watch.

mod rules;
mod watches;
mod server;
mod fault_proxy;

pub use fault_proxy::FaultProxy;
pub use rules::{Fault, Recorded, Requests, Times};
pub use watches::Ending;
