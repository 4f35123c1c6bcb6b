//! Writes what a run found: the Application's status and the `DriftReport`. One request each, and none if nothing
//! changed.

mod links;
pub(crate) mod patch;
pub(crate) mod pauses;
mod report;
pub(crate) mod roll_up;
mod state_change;
pub(crate) mod unknown;
pub(crate) mod warnings;
pub(crate) mod write;
