//! The app's status, rolled up from its objects, and its operation.

mod operation;
mod roll_up;
mod rollback;

#[cfg(test)]
mod tests;

pub use operation::{After, OperationRecord};
pub use roll_up::{AppStatus, ObjectStatus, RollUp, SyncCode, roll_up};
pub use rollback::{RollbackRefused, rollback_target};
