//! `POST /api/webhook`: a Git server reports a push.
//!
//! The order matters: identify the sender, check what can be verified without the body, read the body under a limit,
//! verify its signature, and only then parse it.

mod handler;
mod payload;
mod sender;

pub(crate) use handler::answer;
