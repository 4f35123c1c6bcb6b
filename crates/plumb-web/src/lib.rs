//! The HTTP server of a running engine: probes, metrics, webhooks of Git servers, and the port of the API.
//!
//! There are two listeners: one for the cluster (`/healthz`, `/readyz`, `/metrics`), one for users and Git servers (the
//! API of `plumb-server`, and `/api/webhook`). A webhook only triggers a refresh. All input is untrusted: sizes, times
//! and numbers of requests are limited, and a webhook is not parsed before its sender is verified.
//!
//! A module uses only modules that are listed above it.

mod exposition;
mod response;
mod webhook;
mod routes;
mod connection;
mod server;

pub use plumb_server::{ApiOptions, LocalApi, PageMode, Transport};
pub use routes::Side;
pub use server::{ApiStart, BindError, Listener, Server};
pub use webhook::{knows_sender, read_payload, read_verified};
