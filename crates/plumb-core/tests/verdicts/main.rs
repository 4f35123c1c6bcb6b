//! Verdicts in short: what Git asks for, what the cluster has and who wrote it, what the API server answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

mod controllers;
mod edits;
mod forged;
mod forged_parts;
mod forged_shapes;
mod large;
mod refusals;
mod rendering;
mod scene;
mod server;
mod zero_values;
