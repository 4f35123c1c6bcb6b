//! `cargo xtask test`: everything that CI runs, fastest first.

mod again;
mod counts;
mod demo;
mod steps;
mod task;

pub(crate) use task::{Args, run};
