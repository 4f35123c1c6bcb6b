//! `cargo xtask book`: the documentation as a site.

mod html;
mod pages;
mod task;

pub(crate) use task::{Args, check, run};
