//! Which app runs next, and why.

mod delayed;
mod trigger;
mod work_queue;

pub(crate) use trigger::{RefreshDepth, Trigger, TriggerReason};
pub(crate) use work_queue::{Job, Queue};
