//! When and how syncs happen.

use std::collections::BTreeMap;
use std::time::Duration;

/// `spec.syncPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPolicy {
    /// `None`: every sync is started by a user.
    pub automated: Option<Automation>,
    /// App-level options, in order. Exact strings, as Argo CD compares them.
    pub options: Vec<SyncOption>,
    /// `None`: the default, which differs between manual and automated syncs.
    pub retry: Option<RetryPolicy>,
    /// Metadata of the destination namespace, only with `CreateNamespace=true`.
    pub managed_namespace: Option<ManagedNamespace>,
}

/// `spec.syncPolicy.automated`, present and not switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Automation {
    /// May an automated sync delete?
    pub prune: bool,
    /// Is live drift reverted at a revision that was already synced?
    pub self_heal: bool,
    /// May an automated sync delete everything?
    pub allow_empty: bool,
}

/// One sync option as written, such as `CreateNamespace=true`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncOption(pub String);

impl SyncPolicy {
    /// Is this exact option set?
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|set| set.0 == option)
    }
}

/// `retry`, of a policy or an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often; `None` is without end.
    pub limit: Option<u32>,
    /// How long to wait between tries.
    pub backoff: Backoff,
    /// Resolve the revision again on each attempt.
    pub refresh: bool,
}

/// Exponential waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub duration: Duration,
    /// What each next wait is multiplied with.
    pub factor: u32,
    /// The longest wait.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { duration: Duration::from_secs(5), factor: 2, max: Duration::from_mins(3) }
    }
}

/// `managedNamespaceMetadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedNamespace {
    /// Labels of the namespace.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the namespace.
    pub annotations: BTreeMap<String, String>,
}
