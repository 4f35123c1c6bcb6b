//! The operations of one app that this process knows of.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use plumb_core::automation::LastSync;
use plumb_core::object::ObjectKey;
use plumb_core::sync::PlannedKinds;

use super::active::ActiveOperation;
use super::ended::EndedOperation;

/// `metadata.resourceVersion` of the last write of each object.
pub(crate) type WrittenVersions = Mutex<HashMap<ObjectKey, String>>;

/// The operations of one app.
#[derive(Default)]
pub(crate) struct OperationSlot {
    /// The one under way in this process.
    pub(crate) active: Option<ActiveOperation>,
    /// One that has ended and is not written yet. It is written before anything else is decided.
    pub(crate) ended: Option<EndedOperation>,
    /// The last one that was not a dry run.
    pub(crate) last_sync: LastSync,
    /// The kinds with which the last one failed.
    pub(crate) failed_with: Option<PlannedKinds>,
    /// When the last one that this process knows of started.
    pub(crate) last_start: Option<Timestamp>,
    /// What the one under way has written.
    pub(crate) written: WrittenVersions,
}
