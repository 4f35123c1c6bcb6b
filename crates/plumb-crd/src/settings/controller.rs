//! The settings of `argocd-cmd-params-cm`.

use std::time::Duration;

use plumb_core::glob::Glob;

use super::argocd_cm::ConfigData;
use super::problem::SettingsProblem;
use super::value::{Reader, csv, non_zero};

/// `argocd-cmd-params-cm`. `None`: nobody set it, and plumb's own default counts.
#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// Reconciles at a time.
    pub status_processors: Option<u64>,
    /// The longest one run of a rendering tool may take.
    pub render_timeout: Option<Duration>,
    /// Waiting between self-heals.
    pub self_heal: SelfHealSettings,
    /// The longest a sync may take; `None`: no limit.
    pub sync_timeout: Option<Duration>,
    /// Is the health of each object stored in `status.resources`?
    pub persist_resource_health: bool,
    /// Does every comparison ask the server?
    pub server_side_diff: bool,
    /// Namespaces, beside the control plane's, whose Applications are looked at.
    pub application_namespaces: Vec<Glob>,
    /// Labels of Applications that become metrics.
    pub metrics_application_labels: Vec<String>,
    /// Conditions of Applications that become metrics.
    pub metrics_application_conditions: Vec<String>,
    /// Labels of cluster Secrets that become metrics.
    pub metrics_cluster_labels: Vec<String>,
    /// Renders at a time; `None`: as many as wanted.
    pub render_parallelism: Option<u64>,
    /// Bytes of all manifests of a directory.
    pub max_directory_bytes: Option<u64>,
    /// The longest one request to a Git server may take.
    pub git_timeout: Option<Duration>,
    /// Are submodules fetched?
    pub git_submodules: bool,
}

/// Waiting between self-heals, as far as somebody set it. Argo CD waits 2, 6, 18 … up to 300 s, for the whole app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfHealSettings {
    /// The first wait; zero: `fixed` is used.
    pub backoff: Option<Duration>,
    /// What each next wait is multiplied with.
    pub factor: Option<u64>,
    /// The longest wait.
    pub cap: Option<Duration>,
    /// The same wait each time, where `backoff` is zero.
    pub fixed: Option<Duration>,
}

impl ControllerSettings {
    pub(super) fn read(parameters: &ConfigData, problems: &mut Vec<SettingsProblem>) -> Self {
        let mut reader = Reader::new("argocd-cmd-params-cm", parameters, problems);
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
            persist_resource_health: reader.bool("controller.resource.health.persist", false),
            server_side_diff: reader.bool("controller.diff.server.side", false),
            application_namespaces: reader.globs("application.namespaces"),
            metrics_application_labels: csv(reader.text("controller.metrics.application.labels")),
            metrics_application_conditions: csv(reader.text("controller.metrics.application.conditions")),
            metrics_cluster_labels: csv(reader.text("controller.metrics.cluster.labels")),
            render_parallelism: reader.set_number("reposerver.parallelism.limit").filter(|limit| *limit > 0),
            max_directory_bytes: reader.set_bytes("reposerver.max.combined.directory.manifests.size"),
            git_timeout: non_zero(reader.duration("reposerver.git.request.timeout", Duration::ZERO)),
            git_submodules: reader.bool("reposerver.enable.git.submodule", true),
        }
    }

    /// Are Applications of this namespace looked at?
    pub fn watches_namespace(&self, namespace: &str, control_plane_namespace: &str) -> bool {
        namespace == control_plane_namespace
            || self.application_namespaces.iter().any(|pattern| pattern.matches(namespace))
    }
}
