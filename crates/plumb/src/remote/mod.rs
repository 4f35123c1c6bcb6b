//! Argo CD's API, for users without credentials of the cluster: the file with logins, requests, and the API in the shape
//! of a Kubernetes API server.

mod local_config;
pub(crate) mod query;
mod port_forward;
mod api;
mod choice;
mod kubernetes;

pub(crate) use api::{Api, Flags, PORT_FORWARD};
pub(crate) use choice::{Choice, choose};
pub(crate) use kubernetes::Door;
pub(crate) use local_config::KnownServer;
pub(crate) use port_forward::PortForward;
