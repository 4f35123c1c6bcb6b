//! `POST /api/webhook`: a Git server reports a push, or a change of pull requests.
//!
//! The order matters: identify the sender, check what can be verified without the body, read the body under a limit,
//! verify its signature, and only then parse it.

mod lenient;
mod sender;
mod requests;
mod payload;
mod log_pace;
mod handler;
#[cfg(test)]
mod tests;

pub(crate) use handler::{Webhooks, answer};
pub use payload::{knows_sender, read_payload, read_verified};
