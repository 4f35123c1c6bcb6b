//! What is known about an installation of Argo CD, and what follows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// An installation of Argo CD, as its objects describe it. Everything in it is written by others.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// Applications.
    pub applications: Vec<Value>,
    /// `ApplicationSets`.
    pub application_sets: Vec<Value>,
    /// Deployments and `StatefulSets` of its namespace.
    pub workloads: Vec<Value>,
    /// `data` of `argocd-cm`.
    pub config: BTreeMap<String, String>,
    /// `data` of `argocd-notifications-cm`, if there is one.
    pub notifications: Option<BTreeMap<String, String>>,
    /// The keys of the `ConfigMap` `plumb-plugins`: plugins that plumb would run.
    pub plugins: Vec<String>,
    /// The Secrets that register clusters and repositories.
    pub registrations: Vec<Registration>,
    /// Settings that are set and have no effect on plumb, with the reason.
    pub without_effect: Vec<(String, String)>,
    /// What could not be read, with the reason.
    pub unread: Vec<String>,
    /// What each app's status says, and what plumb would say.
    pub verdicts: Vec<AppVerdict>,
}

/// A Secret that registers a cluster, a repository or credentials, without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// What it is, and its address without credentials: `cluster https://…`.
    pub of: String,
    /// The keys that have a value other than `false`, those in `config` of a cluster as well. `oci` stands for a registry of
    /// artifacts.
    pub keys: BTreeSet<String>,
}

/// One app before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppVerdict {
    /// `namespace/name`.
    pub app: String,
    /// The sync status that Argo CD wrote.
    pub before: String,
    /// What plumb would write; `Unknown` if it cannot judge the app.
    pub after: String,
    /// Why: the classes that count, or the problem.
    pub why: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It does not work with plumb.
    Missing,
    /// A step before the move.
    Step,
    /// It works differently.
    Differs,
    /// It works.
    Works,
}

impl Level {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Step => "step",
            Self::Differs => "differs",
            Self::Works => "works",
        }
    }
}

/// One fact about the move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    pub subject: String,
    /// What is the case.
    pub what: String,
    /// What to do.
    pub next: String,
}

pub(super) fn finding(level: Level, subject: &str, what: impl Into<String>, next: &str) -> Finding {
    Finding { level, subject: subject.to_owned(), what: what.into(), next: next.to_owned() }
}

/// Everything about the move.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What matters most comes first.
    pub findings: Vec<Finding>,
    /// By namespace and name.
    pub verdicts: Vec<AppVerdict>,
}

impl Report {
    /// True if something does not work with plumb.
    pub fn is_blocked(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Missing)
    }
}
