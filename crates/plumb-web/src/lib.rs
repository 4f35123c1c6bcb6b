//! HTTP over a running engine: is it well, its numbers, and pushes that Git servers tell of.
//!
//! Two listeners, as an installation expects them: one for the cluster's own use (`/healthz`, `/readyz`,
//! `/metrics`), one for the world outside (`/api/webhook`). Nothing here changes an object; a webhook only asks
//! the engine to look. All input is hostile: sizes, times and numbers of requests are bounded, and a webhook is
//! not read before its sender has proved who it is.

mod exposition;
mod routes;
mod server;
mod webhook;

pub use server::{BindError, Listener, Side};
