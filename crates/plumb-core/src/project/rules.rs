//! A project's rules as they are written.

use std::time::Duration;

use super::{CronSchedule, DestinationPattern, KindPattern, SignatureRule};
use crate::glob::{Glob, NotAGlob};

/// Everything a project says, before patterns are compiled. Global projects are added here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectRules {
    /// Name of the project.
    pub name: String,
    /// URL globs; `!` forbids.
    pub source_repos: Vec<String>,
    /// Addresses of repositories that are registered for this project alone. They are permitted unless a pattern forbids
    /// them.
    pub scoped_repositories: Vec<String>,
    /// Clusters and namespaces; `!` forbids.
    pub destinations: Vec<DestinationPattern>,
    /// Only clusters that are registered for this project.
    pub only_scoped_clusters: bool,
    /// Cluster-scoped objects that are permitted; empty: none.
    pub cluster_kinds_allowed: Vec<KindPattern>,
    /// Cluster-scoped objects that are forbidden.
    pub cluster_kinds_denied: Vec<KindPattern>,
    /// Namespaced kinds that are permitted; `None`: all, empty: none.
    pub namespaced_kinds_allowed: Option<Vec<KindPattern>>,
    /// Namespaced kinds that are forbidden.
    pub namespaced_kinds_denied: Vec<KindPattern>,
    /// Namespaces, beside the control plane's, whose apps may use the project.
    pub source_namespaces: Vec<String>,
    /// How orphans are looked for; `None`: not at all.
    pub orphaned_resources: Option<OrphanPatterns>,
    /// When syncs may run.
    pub sync_windows: Vec<WindowRule>,
    /// The service account for syncs; the first match applies.
    pub service_accounts: Vec<ServiceAccountRule>,
    /// What commits must prove; exactly one rule may match a repository.
    pub signatures: Vec<SignatureRule>,
    /// True if a sync may bring its own manifests, though the project restricts repositories.
    pub local_manifests: bool,
    /// What plumb does about Secrets that Git has in plain text.
    pub plain_secrets: PlainSecrets,
}

impl ProjectRules {
    /// These rules with those of a global project added. Only the lists that Argo CD merges are: kinds,
    /// windows, repositories, destinations, service accounts.
    ///
    /// A project without a list of namespaced kinds permits all of them; the global project's list does not
    /// take that away unless it has entries, as in Argo CD.
    #[must_use]
    pub fn with_global(mut self, global: &Self) -> Self {
        self.cluster_kinds_allowed.extend_from_slice(&global.cluster_kinds_allowed);
        self.cluster_kinds_denied.extend_from_slice(&global.cluster_kinds_denied);
        self.namespaced_kinds_denied.extend_from_slice(&global.namespaced_kinds_denied);
        let more = global.namespaced_kinds_allowed.as_deref().unwrap_or_default();
        if !more.is_empty() {
            self.namespaced_kinds_allowed.get_or_insert_default().extend_from_slice(more);
        }
        self.sync_windows.extend_from_slice(&global.sync_windows);
        self.source_repos.extend_from_slice(&global.source_repos);
        self.destinations.extend_from_slice(&global.destinations);
        self.service_accounts.extend_from_slice(&global.service_accounts);
        self
    }
}

/// What plumb does about Secrets that Git has in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainSecrets {
    /// Nothing.
    Allow,
    /// Put a warning on the app.
    #[default]
    Warn,
    /// Put an error on the app, and sync nothing while there is one.
    Refuse,
}

impl PlainSecrets {
    /// From the text of the annotation; `None` if it is none of the three words.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Self::Allow),
            "warn" => Some(Self::Warn),
            "refuse" => Some(Self::Refuse),
            _ => None,
        }
    }
}

/// `orphanedResources`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanPatterns {
    /// Put a warning on the apps.
    pub warn: bool,
    /// Objects that do not count as orphans.
    pub ignore: Vec<OrphanPattern>,
}

/// Objects that do not count as orphans, as globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanPattern {
    /// API group; empty matches only the core group.
    pub group: String,
    /// Kind; empty matches any.
    pub kind: String,
    /// Name; empty matches any.
    pub name: String,
}

/// One sync window as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRule {
    /// May syncs run in it, or may they not?
    pub kind: WindowKind,
    /// When it is open, or why that cannot be read.
    pub time: Result<WindowTime, String>,
    /// App names it concerns, as globs.
    pub applications: Vec<String>,
    /// Destination namespaces it concerns, as globs.
    pub namespaces: Vec<String>,
    /// Names or addresses of clusters it concerns, as globs.
    pub clusters: Vec<String>,
    /// Must all lists that are set match, not just one?
    pub all_lists: bool,
    /// May a user sync nevertheless?
    pub manual_sync: bool,
    /// May a sync that began in time go on?
    pub sync_overrun: bool,
    /// Description for users.
    pub description: String,
}

/// What a sync window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Syncs may run in it, and only in it.
    Allow,
    /// Syncs may not run in it.
    Deny,
}

/// When a sync window is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTime {
    /// When it opens.
    pub schedule: CronSchedule,
    /// How long it stays open.
    pub duration: Duration,
    /// Time zone of the schedule.
    pub zone: jiff::tz::TimeZone,
}

/// The service account for syncs to a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccountRule {
    /// Address of the cluster, as a glob.
    pub server: String,
    /// Destination namespace, as a glob.
    pub namespace: String,
    /// `name`, or `namespace:name`.
    pub account: String,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectProblem {
    /// Where, such as `sourceRepos[2]`.
    pub field: String,
    /// What is wrong.
    pub reason: String,
}

/// Compiles a list that permits: what cannot be read is reported and left out.
pub(super) fn compile_list(
    patterns: &[String],
    field: &str,
    compile: fn(&str) -> Result<Glob, NotAGlob>,
    problems: &mut Vec<ProjectProblem>,
) -> Vec<Glob> {
    let mut globs = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        match compile(pattern) {
            Ok(glob) => globs.push(glob),
            Err(error) => problems
                .push(ProjectProblem { field: format!("{field}[{index}]"), reason: error.to_string() }),
        }
    }
    globs
}
