//! What can go wrong between plumb and an API server.

mod api;
mod connect;

pub use api::{ApiError, Cause, Reason, Retry, Status};
pub use connect::ConnectError;
