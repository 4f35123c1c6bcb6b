//! What tests stand on, and nothing that ships: a real control plane started from this
//! repository's own sources.
//!
//! This crate speaks to the people who write tests, so its errors are `anyhow`'s: nobody
//! decides anything by them.

pub mod cluster;
