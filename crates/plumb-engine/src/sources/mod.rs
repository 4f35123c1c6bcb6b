//! From an app's sources to the desired set: resolve, read, render.

pub(crate) mod gather;
pub(crate) mod path_filter;
pub(crate) mod resolve;
pub(crate) mod slow_servers;
