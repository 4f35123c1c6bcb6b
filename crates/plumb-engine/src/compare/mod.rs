//! Compares the desired set with the live objects and judges each difference.

pub(crate) mod ignored_updates;
mod inputs;
pub(crate) mod judge;
pub(crate) mod orphans;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod verdict_cache;
