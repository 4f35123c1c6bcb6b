//! Pushes that webhooks report: which apps they affect, and how they reach the leader.

pub(crate) mod push;
mod inbox;
pub(crate) mod push_box;
