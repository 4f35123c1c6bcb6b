//! Compares the desired set with the live objects and judges each difference.

pub(crate) mod costly_rules;
pub(crate) mod ignored_updates;
pub(crate) mod inputs;
pub(crate) mod judge;
pub(crate) mod orphans;
pub(crate) mod run;
pub(crate) mod state;
mod verdict_cache;
