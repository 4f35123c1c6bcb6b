//! What is known about one app.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::app::AppId;
use crate::drift::Finding;
use crate::object::ObjectKey;

/// What is known about one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppFacts {
    /// The app.
    pub app: AppId,
    /// Its project.
    pub project: String,
    /// Has it been judged? If not, `findings` says nothing.
    pub is_judged: bool,
    /// Why it could not be judged, or not completely.
    pub problem: Option<String>,
    /// Who wrote its status.
    pub status_of: StatusOf,
    /// Every explained difference.
    pub findings: Vec<Finding>,
    /// Its unhealthy objects.
    pub unhealthy: Vec<UnhealthyFact>,
    /// What a user paused.
    pub pauses: Vec<PauseFact>,
    /// The objects that the app's status shows as `OutOfSync`, whichever controller wrote it.
    pub red: BTreeSet<ObjectKey>,
    /// Secrets that Git has with their values, as far as this is known.
    pub plain_secrets: Vec<ObjectKey>,
}

/// The controller that wrote the status of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatusOf {
    /// plumb's engine: the status is plumb's verdict.
    #[default]
    Plumb,
    /// Argo CD: the status is another verdict, and is shown beside plumb's.
    ArgoCd,
}

/// An unhealthy object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnhealthyFact {
    /// Which one.
    pub key: ObjectKey,
    /// Its health; empty for an object without its own health that has an unhealthy child.
    pub status: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// It has been progressing for longer than is normal.
    pub is_stuck: bool,
    /// Why: the chain of causes, starting with the object.
    pub causes: Vec<String>,
}

impl UnhealthyFact {
    /// Does a container crash again and again? The reason of the kubelet says so, in every report and status.
    pub fn is_crash_loop(&self) -> bool {
        is_crash_loop(&self.causes)
    }
}

pub(super) fn is_crash_loop(causes: &[String]) -> bool {
    causes.iter().any(|cause| cause.contains("CrashLoopBackOff"))
}

/// An app or object that a user paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseFact {
    /// Which object; for the app, the Application.
    pub key: ObjectKey,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: String,
}
