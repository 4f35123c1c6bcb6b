//! The app's status, rolled up from its objects, and its operation.

mod objects;
mod operation;
mod report_pace;
mod roll_up;
mod rollback;
mod settling;

#[cfg(test)]
mod tests;

pub use objects::ComparedObjects;
pub use operation::{After, OperationRecord};
pub use report_pace::{ReportDigest, ReportDue, WrittenReport, report_due};
pub use roll_up::{AppStatus, ObjectStatus, RollUp, SyncCode, roll_up};
pub use rollback::{RollbackRefused, rollback_target};
pub use settling::{settles_soon, settling_time};
