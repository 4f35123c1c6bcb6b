//! The HTTP server of a running engine: probes, metrics and webhooks of Git servers.
//!
//! There are two listeners: one for the cluster (`/healthz`, `/readyz`, `/metrics`), one for Git servers
//! (`/api/webhook`). No request changes an object; a webhook only triggers a refresh. All input is untrusted: sizes,
//! times and numbers of requests are limited, and a webhook is not parsed before its sender is verified.
//!
//! A module uses only modules that are listed above it.

mod exposition;
mod response;
mod webhook;
mod routes;
mod server;

pub use routes::Side;
pub use server::{BindError, Listener, Server};
pub use webhook::read_payload;
