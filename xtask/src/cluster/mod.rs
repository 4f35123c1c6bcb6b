//! Real control planes on 127.0.0.1, for tests, measurements and the demo.

mod show;
mod task;

pub(crate) use task::{Args, ensure_programs, run};
