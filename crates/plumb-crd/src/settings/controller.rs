//! The settings of `argocd-cmd-params-cm`.

use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_core::source::{AddressRange, AddressRule};

use super::argocd_cm::ConfigData;
use super::problem::SettingsProblem;
use super::value::{AskedKeys, Reader, csv, non_zero};

/// `argocd-cmd-params-cm`. `None`: not set, so plumb's own default applies.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// Concurrent reconciliations.
    pub status_processors: Option<u64>,
    /// Longest run of a rendering tool.
    pub render_timeout: Option<Duration>,
    /// Delays between self-heals.
    pub self_heal: SelfHealSettings,
    /// Longest duration of a sync; `None`: no limit.
    pub sync_timeout: Option<Duration>,
    /// Store the health of each object in `status.resources`.
    pub persist_resource_health: bool,
    /// Use a server-side dry-run for every comparison.
    pub server_side_diff: bool,
    /// Namespaces, besides the control plane's, whose Applications are managed.
    pub application_namespaces: Vec<Glob>,
    /// Labels of Applications that become metrics.
    pub metrics_application_labels: Vec<String>,
    /// Conditions of Applications that become metrics.
    pub metrics_application_conditions: Vec<String>,
    /// Labels of cluster Secrets that become metrics.
    pub metrics_cluster_labels: Vec<String>,
    /// Concurrent renderings; `None`: no limit.
    pub render_parallelism: Option<u64>,
    /// Bytes of all manifests of a directory.
    pub max_directory_bytes: Option<u64>,
    /// Longest request to a Git server.
    pub git_timeout: Option<Duration>,
    /// Fetch submodules.
    pub git_submodules: bool,
    /// Bytes of the index of a Helm repository.
    pub max_index_bytes: Option<u64>,
    /// Addresses of repositories that are permitted besides the usual ones.
    pub allowed_addresses: Vec<AddressRule>,
    /// Addresses of repositories that are not permitted besides the usual ones.
    pub denied_addresses: Vec<AddressRange>,
    /// The controller of sets.
    pub app_sets: AppSetSettings,
}

/// The keys `applicationsetcontroller.*`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct AppSetSettings {
    /// The policy for all sets: `create-only`, `create-update`, `create-delete` or `sync`; empty: each set has its own.
    pub policy: String,
    /// True if a set may have another policy all the same.
    pub policy_override: bool,
    /// Rollouts in steps.
    pub progressive_syncs: bool,
    /// Patterns of Git files do not match across directories.
    pub new_git_file_globbing: bool,
    /// Namespaces, besides the control plane's, whose sets are managed.
    pub namespaces: Vec<Glob>,
    /// Annotations that stay on generated Applications.
    pub preserved_annotations: Vec<String>,
    /// Labels that stay on generated Applications.
    pub preserved_labels: Vec<String>,
    /// How often Git is asked for sets; `None`: 3 minutes.
    pub requeue_after: Option<Duration>,
    /// Most Applications that the status of a set lists.
    pub max_resources: Option<u64>,
    /// False: sets may not ask SCM providers.
    pub scm_providers: bool,
    /// Addresses of SCM providers that sets may name; empty: all.
    pub allowed_scm_providers: Vec<String>,
    /// Secrets with tokens need a label.
    pub strict_token_refs: bool,
    /// Directories whose name starts with a dot count for the generator `git`, too.
    pub include_hidden_directories: bool,
    /// Sets write no Applications.
    pub dry_run: bool,
}

impl AppSetSettings {
    /// Argo CD does not start with a word that it does not know. plumb then does what deletes and changes nothing.
    fn read_policy(reader: &mut Reader<'_>) -> String {
        const KEY: &str = "applicationsetcontroller.policy";
        let policy = reader.text(KEY);
        if matches!(policy, "" | "create-only" | "create-update" | "create-delete" | "sync") {
            return policy.to_owned();
        }
        reader.report(KEY, "expected create-only, create-update, create-delete or sync; create-only is used");
        "create-only".to_owned()
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let policy = Self::read_policy(reader);
        Self {
            policy_override: reader
                .bool("applicationsetcontroller.enable.policy.override", policy.is_empty()),
            policy,
            progressive_syncs: reader.bool("applicationsetcontroller.enable.progressive.syncs", false),
            new_git_file_globbing: reader
                .bool("applicationsetcontroller.enable.new.git.file.globbing", false),
            namespaces: reader.globs("applicationsetcontroller.namespaces"),
            preserved_annotations: csv(reader.text("applicationsetcontroller.global.preserved.annotations")),
            preserved_labels: csv(reader.text("applicationsetcontroller.global.preserved.labels")),
            requeue_after: non_zero(
                reader.duration("applicationsetcontroller.requeue.after", Duration::ZERO),
            ),
            max_resources: reader.set_number("applicationsetcontroller.status.max.resources.count"),
            scm_providers: reader.bool("applicationsetcontroller.enable.scm.providers", true),
            allowed_scm_providers: csv(reader.text("applicationsetcontroller.allowed.scm.providers")),
            strict_token_refs: reader.bool("applicationsetcontroller.enable.tokenref.strict.mode", false),
            include_hidden_directories: reader.bool("reposerver.include.hidden.directories", false),
            dry_run: reader.bool("applicationsetcontroller.dryrun", false),
        }
    }
}

/// Delays between self-heals, as far as they are set. Argo CD waits 2, 6, 18 … up to 300 s, for the whole app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfHealSettings {
    /// The first delay; zero: `fixed` is used.
    pub backoff: Option<Duration>,
    /// Factor of each next delay.
    pub factor: Option<u64>,
    /// Longest delay.
    pub cap: Option<Duration>,
    /// A constant delay, used if `backoff` is zero.
    pub fixed: Option<Duration>,
}

impl ControllerSettings {
    pub(super) fn read(
        parameters: &ConfigData,
        problems: &mut Vec<SettingsProblem>,
        asked: Option<&AskedKeys>,
    ) -> Self {
        let mut reader = Reader::new("argocd-cmd-params-cm", parameters, problems, asked);
        Self {
            status_processors: reader.set_number("controller.status.processors").filter(|limit| *limit > 0),
            render_timeout: reader
                .set_seconds("controller.repo.server.timeout.seconds")
                .filter(|time| !time.is_zero()),
            self_heal: SelfHealSettings {
                backoff: reader.set_seconds("controller.self.heal.backoff.timeout.seconds"),
                factor: reader.set_number("controller.self.heal.backoff.factor"),
                cap: reader.set_seconds("controller.self.heal.backoff.cap.seconds"),
                fixed: reader.set_seconds("controller.self.heal.timeout.seconds"),
            },
            sync_timeout: non_zero(reader.seconds("controller.sync.timeout.seconds", 0)),
            persist_resource_health: reader.bool("controller.resource.health.persist", true),
            server_side_diff: reader.bool("controller.diff.server.side", false),
            application_namespaces: reader.globs("application.namespaces"),
            metrics_application_labels: csv(reader.text("controller.metrics.application.labels")),
            metrics_application_conditions: csv(reader.text("controller.metrics.application.conditions")),
            metrics_cluster_labels: csv(reader.text("controller.metrics.cluster.labels")),
            render_parallelism: reader.set_number("reposerver.parallelism.limit").filter(|limit| *limit > 0),
            max_directory_bytes: reader.set_bytes("reposerver.max.combined.directory.manifests.size"),
            git_timeout: non_zero(reader.duration("reposerver.git.request.timeout", Duration::ZERO)),
            git_submodules: reader.bool("reposerver.enable.git.submodule", true),
            max_index_bytes: reader.set_bytes("reposerver.helm.manifest.max.index.size"),
            allowed_addresses: reader.each("reposerver.allowed.addresses"),
            denied_addresses: reader.each("reposerver.denied.addresses"),
            app_sets: AppSetSettings::read(&mut reader),
        }
    }

    /// True if Applications of this namespace are managed.
    pub fn watches_namespace(&self, namespace: &str, control_plane_namespace: &str) -> bool {
        namespace == control_plane_namespace
            || self.application_namespaces.iter().any(|pattern| pattern.matches(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    #[test]
    fn switches_of_sets() {
        let read = |key: &str| {
            let parameters = ConfigData::from([(key.to_owned(), "true".to_owned())]);
            let (settings, problems) = Settings::read(&ConfigData::new(), &parameters);
            assert_eq!(problems, []);
            let app_sets = settings.controller.app_sets;
            (app_sets.dry_run, app_sets.include_hidden_directories)
        };
        assert_eq!(read("applicationsetcontroller.dryrun"), (true, false));
        assert_eq!(read("reposerver.include.hidden.directories"), (false, true));
    }
}
