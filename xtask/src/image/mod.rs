//! The container image: `cargo xtask image` makes it, and `cargo xtask test` runs it under runc.

mod seccomp;
mod sbom;
mod context;
mod builder;
mod container;
mod story;
mod task;

pub(crate) use builder::{Image, missing_tools};
pub(crate) use sbom::cargo_components;
pub(crate) use task::{Args, check, release, run};
