//! From an app's sources to the desired set: resolve the revisions, read the files, render, build.

pub(crate) mod error;
pub(crate) mod gather;
pub(crate) mod gathered;
mod inputs;
pub(crate) mod parked;
mod path_filter;
mod render;
mod render_slots;
mod resolve;
mod questions;
pub(crate) mod slow_servers;
pub(crate) mod state;
