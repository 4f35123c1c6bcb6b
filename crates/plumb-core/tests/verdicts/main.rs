//! Verdicts in short: what Git asks, what the cluster holds and who wrote it there, what the server answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

mod controllers;
mod edits;
mod refusals;
mod rendering;
mod scene;
mod server;
