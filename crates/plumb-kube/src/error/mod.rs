//! What can go wrong between plumb and an API server.

mod api;
mod connect;
mod port_forward;

pub use api::{ApiError, Cause, Reason, Retry, Status};
pub use connect::ConnectError;
pub use port_forward::PortForwardError;
