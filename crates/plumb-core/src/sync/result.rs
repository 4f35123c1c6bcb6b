//! Results as `operationState.syncResult.resources` holds them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::plan::{RefusedObject, Step, StepId};

/// The phase of an operation, or of one step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OperationPhase {
    /// Running.
    Running,
    /// Being stopped.
    Terminating,
    /// Done.
    Succeeded,
    /// An object failed, or it was stopped.
    Failed,
    /// The engine could not do its work.
    Error,
}

impl OperationPhase {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Terminating => "Terminating",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Error => "Error",
        }
    }

    /// Reads the name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Terminating, Self::Succeeded, Self::Failed, Self::Error]
            .into_iter()
            .find(|phase| phase.name() == name)
    }

    /// Has it ended?
    pub fn is_completed(self) -> bool {
        match self {
            Self::Running | Self::Terminating => false,
            Self::Succeeded | Self::Failed | Self::Error => true,
        }
    }

    /// Has it failed?
    pub fn is_failed(self) -> bool {
        match self {
            Self::Failed | Self::Error => true,
            Self::Running | Self::Terminating | Self::Succeeded => false,
        }
    }
}

impl fmt::Display for OperationPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The result for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ResultCode {
    /// Written, or already in sync.
    Synced,
    /// Could not be written.
    SyncFailed,
    /// Deleted.
    Pruned,
    /// Removed from Git and not deleted.
    PruneSkipped,
}

impl ResultCode {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::SyncFailed => "SyncFailed",
            Self::Pruned => "Pruned",
            Self::PruneSkipped => "PruneSkipped",
        }
    }

    /// Reads the name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Synced, Self::SyncFailed, Self::Pruned, Self::PruneSkipped]
            .into_iter()
            .find(|code| code.name() == name)
    }
}

/// One entry of `syncResult.resources`, field by field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceResult {
    /// Group, kind, namespace, name and `syncPhase`.
    pub id: StepId,
    /// API version.
    pub version: String,
    /// `status`; empty on the wire for `None`.
    pub status: Option<ResultCode>,
    /// `message`.
    pub message: String,
    /// Is it a hook? Then `hookType` is the name of the phase.
    pub is_hook: bool,
    /// `hookPhase`, for objects too.
    pub phase: OperationPhase,
    /// Images of its pods.
    pub images: Vec<String>,
}

impl ResourceResult {
    /// The result of an object that prevented a plan.
    pub fn refused(object: &RefusedObject) -> Self {
        Self {
            id: object.id.clone(),
            version: object.version.clone(),
            status: Some(ResultCode::SyncFailed),
            message: object.message.clone(),
            is_hook: object.is_hook,
            phase: OperationPhase::Failed,
            images: Vec::new(),
        }
    }

    pub(super) fn of(
        step: &Step,
        status: Option<ResultCode>,
        phase: OperationPhase,
        message: String,
    ) -> Self {
        Self {
            id: step.id.clone(),
            version: step.version.clone(),
            status,
            message,
            is_hook: step.hook().is_some(),
            phase,
            images: Vec::new(),
        }
    }
}

/// Results in the order in which each was first known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    list: Vec<ResourceResult>,
    index: BTreeMap<StepId, usize>,
}

impl Results {
    pub(super) fn get(&self, id: &StepId) -> Option<&ResourceResult> {
        self.list.get(*self.index.get(id)?)
    }

    /// Sets a result; says whether anything changed.
    pub(super) fn set(&mut self, result: ResourceResult) -> bool {
        match self.index.get(&result.id).and_then(|index| self.list.get_mut(*index)) {
            Some(known) if *known == result => false,
            Some(known) => {
                *known = result;
                true
            }
            None => {
                self.index.insert(result.id.clone(), self.list.len());
                self.list.push(result);
                true
            }
        }
    }

    /// Forgets a result: its step has yet to run.
    pub(super) fn remove(&mut self, id: &StepId) {
        self.list.retain(|result| result.id != *id);
        self.index = self.list.iter().enumerate().map(|(index, result)| (result.id.clone(), index)).collect();
    }

    pub(super) fn list(&self) -> &[ResourceResult] {
        &self.list
    }
}
