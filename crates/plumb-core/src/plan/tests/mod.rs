//! Tests of the plan.

pub(crate) mod fixture;
mod options;
mod order;
mod properties;
mod prune;
mod tombstone;
mod write;
