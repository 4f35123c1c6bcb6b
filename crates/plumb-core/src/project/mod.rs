//! What a group of apps may do: sources, destinations, kinds, times.
//!
//! A [`Project`] is compiled once from its [`ProjectRules`] and then asked. Every check is a pure function;
//! the write gate asks them again for each object. Where a rule cannot be read, the answer is no.

mod cron;
mod kinds;
mod orphans;
mod places;
mod repository;
mod rules;
mod signature;
#[cfg(test)]
mod tests;
mod windows;

use jiff::Timestamp;

pub use cron::{CronSchedule, NotASchedule};
pub use kinds::KindPattern;
pub use orphans::OrphanRules;
pub use places::{DestinationPattern, TargetCluster};
pub use repository::{has_dot_segments, normalize_repo_url, shown_repo_url};
pub use rules::{
    OrphanPattern, OrphanPatterns, ProjectProblem, ProjectRules, ServiceAccountRule, WindowKind, WindowRule,
    WindowTime,
};
pub use signature::{SignatureMode, SignatureRule};
pub use windows::{SyncTrigger, SyncWindow, WindowDecision, WindowSubject};

use crate::app::App;
use crate::glob::Glob;
use crate::object::{GroupKind, ObjectKey};
use kinds::KindLists;
use places::Destinations;
use repository::Sources;
use signature::Signatures;

/// A project's rules, compiled.
#[derive(Clone, Debug)]
pub struct Project {
    name: String,
    sources: Sources,
    destinations: Destinations,
    kinds: KindLists,
    source_namespaces: Vec<Glob>,
    orphans: Option<OrphanRules>,
    windows: Vec<SyncWindow>,
    service_accounts: Vec<ServiceAccount>,
    signatures: Signatures,
}

#[derive(Clone, Debug)]
struct ServiceAccount {
    server: Glob,
    namespace: Glob,
    account: String,
}

/// A project says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kind (or cluster-scoped object) is on no allow list, or on a deny list.
    #[error("resource {kind} is not permitted in project {project}")]
    Kind {
        /// `group:Kind`, as Argo CD prints it.
        kind: String,
        /// Name of the project.
        project: String,
    },
    /// The object's namespace is no permitted destination.
    #[error("namespace {namespace} is not permitted in project '{project}'")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// Name of the project.
        project: String,
    },
}

impl Project {
    /// Compiles the rules. What cannot be read is reported, permits nothing, and where it would forbid,
    /// forbids everything.
    pub fn compile(rules: &ProjectRules) -> (Self, Vec<ProjectProblem>) {
        let mut problems = Vec::new();
        let project = Self {
            name: rules.name.clone(),
            sources: Sources::compile(&rules.source_repos, &mut problems),
            destinations: Destinations::compile(rules, &mut problems),
            kinds: KindLists::compile(rules, &mut problems),
            source_namespaces: rules::compile_list(
                &rules.source_namespaces,
                "sourceNamespaces",
                Glob::regex_or_plain,
                &mut problems,
            ),
            orphans: rules
                .orphaned_resources
                .as_ref()
                .map(|rules| OrphanRules::compile(rules, &mut problems)),
            windows: windows::compile(&rules.sync_windows, &mut problems),
            service_accounts: service_accounts(&rules.service_accounts, &mut problems),
            signatures: Signatures::compile(&rules.signatures, &mut problems),
        };
        (project, problems)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// May apps of this namespace use the project? Those of the control-plane namespace always may.
    pub fn permits_app_namespace(&self, namespace: &str, control_plane_namespace: &str) -> bool {
        namespace == control_plane_namespace
            || self.source_namespaces.iter().any(|pattern| pattern.matches(namespace))
    }

    /// May manifests come from this repository?
    pub fn permits_source(&self, repo_url: &str) -> bool {
        self.sources.permit(repo_url)
    }

    /// What the commits of this repository must prove; `None`: nothing.
    pub fn signatures(&self, repo_url: &str) -> Option<&SignatureRule> {
        self.signatures.of(repo_url)
    }

    /// May objects go to this namespace of this cluster?
    pub fn permits_destination(&self, cluster: &TargetCluster<'_>, namespace: &str) -> bool {
        self.destinations.permit(&self.name, cluster, namespace)
    }

    /// May objects of this kind exist? The name matters only for cluster-scoped kinds.
    pub fn permits_kind(&self, kind: &GroupKind, name: &str, namespaced: bool) -> bool {
        self.kinds.permit(kind, name, namespaced)
    }

    /// May this object be touched? Its kind first, then its namespace.
    pub fn permits_object(&self, key: &ObjectKey, cluster: &TargetCluster<'_>) -> Result<(), Refusal> {
        let kind = key.group_kind();
        if !self.permits_kind(&kind, &key.name, key.namespace.is_some()) {
            let kind = format!("{}:{}", kind.group, kind.kind);
            return Err(Refusal::Kind { kind, project: self.name.clone() });
        }
        match &key.namespace {
            Some(namespace) if !self.permits_destination(cluster, namespace) => {
                Err(Refusal::Namespace { namespace: namespace.clone(), project: self.name.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What is wrong with an app in this project, in the words of Argo CD's `InvalidSpecError`; empty if
    /// nothing is.
    pub fn check_app(
        &self,
        app: &App,
        cluster: &TargetCluster<'_>,
        control_plane_namespace: &str,
    ) -> Vec<String> {
        let mut refusals = Vec::new();
        let project = &self.name;
        if !self.permits_app_namespace(&app.id.namespace, control_plane_namespace) {
            refusals.push(format!(
                "application '{}' in namespace '{}' is not permitted to use project '{project}'",
                app.id.name, app.id.namespace
            ));
        }
        for source in app.sources.iter().filter(|source| !self.permits_source(&source.repo_url)) {
            let url = shown_repo_url(&source.repo_url);
            refusals.push(format!("application repo {url} is not permitted in project '{project}'"));
        }
        let namespace = app.destination.namespace.as_deref().unwrap_or_default();
        if !self.permits_destination(cluster, namespace) {
            refusals.push(format!(
                "application destination server '{}' and namespace '{namespace}' do not match any of the allowed \
                 destinations in project '{project}'",
                cluster.server
            ));
        }
        refusals
    }

    /// How orphans are looked for; `None`: not at all.
    pub fn orphans(&self) -> Option<&OrphanRules> {
        self.orphans.as_ref()
    }

    /// All sync windows, in order.
    pub fn windows(&self) -> &[SyncWindow] {
        &self.windows
    }

    /// May a sync run now? `started` is when the running operation began, if one is running.
    pub fn permits_sync(
        &self,
        subject: &WindowSubject<'_>,
        trigger: SyncTrigger,
        started: Option<Timestamp>,
        now: Timestamp,
    ) -> WindowDecision {
        windows::decide(&self.windows, subject, trigger, started, now)
    }

    /// The next time after `now` at which sync windows can decide otherwise for an app; `None`: never.
    pub fn next_window_change(&self, subject: &WindowSubject<'_>, now: Timestamp) -> Option<Timestamp> {
        windows::next_change(&self.windows, subject, now)
    }

    /// The user to act as in a destination, `system:serviceaccount:<namespace>:<name>`; `None` if no rule
    /// matches. An account without namespace lives in the destination's, else in the app's own.
    pub fn service_account(
        &self,
        server: &str,
        destination_namespace: Option<&str>,
        app_namespace: &str,
    ) -> Option<String> {
        let namespace = destination_namespace.unwrap_or_default();
        let rule = self
            .service_accounts
            .iter()
            .find(|rule| rule.server.matches(server) && rule.namespace.matches(namespace))?;
        Some(if rule.account.contains(':') {
            format!("system:serviceaccount:{}", rule.account)
        } else {
            format!(
                "system:serviceaccount:{}:{}",
                destination_namespace.unwrap_or(app_namespace),
                rule.account
            )
        })
    }
}

/// A rule that cannot be read stays as one that matches nothing: the next rule may name a mightier account,
/// but which account was meant cannot be known, and no account means no sync where they are enforced.
fn service_accounts(rules: &[ServiceAccountRule], problems: &mut Vec<ProjectProblem>) -> Vec<ServiceAccount> {
    let mut accounts = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let field = format!("destinationServiceAccounts[{index}]");
        let is_name = !rule.account.trim().is_empty()
            && !rule.account.contains(['!', '*', '[', ']', '{', '}', '\\', '/']);
        if !is_name {
            let reason = format!("defaultServiceAccount has an invalid format, '{}'", rule.account);
            problems.push(ProjectProblem { field, reason });
            continue;
        }
        match (Glob::plain(&rule.server), Glob::plain(&rule.namespace)) {
            (Ok(server), Ok(namespace)) => {
                accounts.push(ServiceAccount { server, namespace, account: rule.account.clone() });
            }
            (Err(error), _) | (_, Err(error)) => {
                problems.push(ProjectProblem { field, reason: error.to_string() });
            }
        }
    }
    accounts
}
