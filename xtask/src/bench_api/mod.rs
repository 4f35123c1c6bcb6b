//! `cargo xtask bench-api`: what the API costs with many Applications and many open streams.

mod client;
mod streams;
mod task;

pub(crate) use task::{Args, run};
