//! A compiled project and the checks that it answers.

use jiff::Timestamp;

use super::kinds::KindLists;
use super::places::Destinations;
use super::repository::Sources;
use super::rules::compile_list;
use super::service_accounts::{self, ServiceAccount};
use super::signature::Signatures;
use super::windows;
use super::{
    OrphanRules, PlainSecrets, ProjectProblem, ProjectRules, Refusal, SignatureRule, SyncTrigger, SyncWindow,
    TargetCluster, WindowDecision, WindowSubject, shown_repo_url,
};
use crate::app::{App, Source};
use crate::glob::Glob;
use crate::object::{GroupKind, ObjectKey};

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
    local_manifests: bool,
    plain_secrets: PlainSecrets,
}

/// On an `AppProject`: `"true"` lets syncs bring their own manifests (`app sync --local`).
pub const LOCAL_MANIFESTS_ANNOTATION: &str = "plumb.dev/allow-local-manifests";

/// On an `AppProject`: `allow`, `warn` or `refuse` Secrets that Git has in plain text.
pub const PLAIN_SECRETS_ANNOTATION: &str = "plumb.dev/plain-secrets";

impl Project {
    /// Compiles the rules. What cannot be read is reported, permits nothing, and where it would forbid,
    /// forbids everything.
    pub fn compile(rules: &ProjectRules) -> (Self, Vec<ProjectProblem>) {
        let mut problems = Vec::new();
        let project = Self {
            name: rules.name.clone(),
            sources: Sources::compile(&rules.source_repos, &rules.scoped_repositories, &mut problems),
            destinations: Destinations::compile(rules, &mut problems),
            kinds: KindLists::compile(rules, &mut problems),
            source_namespaces: compile_list(
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
            service_accounts: service_accounts::compile(&rules.service_accounts, &mut problems),
            signatures: Signatures::compile(&rules.signatures, &mut problems),
            local_manifests: rules.local_manifests,
            plain_secrets: rules.plain_secrets,
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

    /// Why manifests may not come from this repository, if they may not.
    pub fn refuses_source(&self, repo_url: &str) -> Option<String> {
        (!self.permits_source(repo_url)).then(|| {
            let url = shown_repo_url(repo_url);
            format!("application repo {url} is not permitted in project '{}'", self.name)
        })
    }

    /// Why a sync may not bring its own manifests, if it may not. They come from no repository and no commit, so a project
    /// that requires signatures refuses them. One that restricts repositories has to permit them by an annotation.
    pub fn refuses_local_manifests(&self) -> Option<String> {
        let project = &self.name;
        if self.signatures.ask_for_anything() {
            return Some(format!(
                "cannot sync manifests of the request: project '{project}' requires signed commits"
            ));
        }
        let is_permitted = self.local_manifests || self.sources.permit_everything();
        (!is_permitted).then(|| {
            format!(
                "cannot sync manifests of the request: project '{project}' restricts the repositories that manifests \
                 may come from; commit them there, or annotate the project with {LOCAL_MANIFESTS_ANNOTATION}=true"
            )
        })
    }

    /// What plumb does about Secrets that Git has in plain text.
    pub fn plain_secrets(&self) -> PlainSecrets {
        self.plain_secrets
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
        self.refusals(app, cluster, control_plane_namespace, &app.sources)
    }

    /// What speaks against deleting the objects of an app in this project; empty if nothing does. A deletion needs no source,
    /// so an app whose repository is not permitted any more can be deleted.
    pub fn check_deletion(
        &self,
        app: &App,
        cluster: &TargetCluster<'_>,
        control_plane_namespace: &str,
    ) -> Vec<String> {
        self.refusals(app, cluster, control_plane_namespace, &[])
    }

    fn refusals(
        &self,
        app: &App,
        cluster: &TargetCluster<'_>,
        control_plane_namespace: &str,
        sources: &[Source],
    ) -> Vec<String> {
        let mut refusals = Vec::new();
        let project = &self.name;
        if !self.permits_app_namespace(&app.id.namespace, control_plane_namespace) {
            refusals.push(format!(
                "application '{}' in namespace '{}' is not permitted to use project '{project}'",
                app.id.name, app.id.namespace
            ));
        }
        refusals.extend(sources.iter().filter_map(|source| self.refuses_source(&source.repo_url)));
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
        service_accounts::user_for(&self.service_accounts, server, destination_namespace, app_namespace)
    }
}
