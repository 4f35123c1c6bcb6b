//! The settings as one run sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use plumb_core::app::{App, CompareOptions, IgnoreRule};
use plumb_core::automation::HealLimits;
use plumb_core::desired::KindFilter;
use plumb_core::drift::HealLimit;
use plumb_core::glob::Glob;
use plumb_core::health::ProgressLimits;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{GroupKind, ObjectKey};
use plumb_core::plan::{PruneBudget, TombstoneLimits};
use plumb_core::schema::{KnownType, SensitiveField};
use plumb_core::source::{AddressRange, AddressRule};
use plumb_core::tracking::TrackingSettings;
use plumb_crd::settings::{
    self as wire, ConfigData, Impersonation, PLUGINS_CONFIG_MAP, Repositories, SecretData, SettingsProblem,
    read_plugins,
};
use plumb_lua::Scripts;
use plumb_render::RenderSettings;

use super::limits::{
    heal_limits, keep_tombstones, progress_limits, protected_kinds, prune_budget, quote_logs, set_budget,
    tombstone_limits,
};
use super::rendering::{allow_unconfined_plugins, read_scripts, render_settings};
use super::repositories::{BrokenRepository, read_repositories};
use super::rules::update_rules;
use crate::events::event::LabelFilter;

/// The settings as one run sees them.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one setting")]
pub(crate) struct Settings {
    /// Increases with every change.
    pub(crate) generation: u64,
    pub(crate) tracking: TrackingSettings,
    pub(crate) filter: KindFilter,
    pub(crate) render: Arc<RenderSettings>,
    /// System-wide ignore rules.
    pub(crate) ignore: Vec<IgnoreRule>,
    /// Fields of custom resources that hold a type of Kubernetes.
    pub(crate) known_types: Arc<[KnownType]>,
    /// Fields of custom resources whose values are secrets.
    pub(crate) sensitive_fields: Arc<[SensitiveField]>,
    /// Compare options of apps that set none.
    pub(super) compare_options: CompareOptions,
    /// Projects whose rules are added to others.
    pub(in crate::config) global_projects: Vec<wire::GlobalProject>,
    /// Changes that request no run; `None` if every change does.
    pub(crate) update_rules: Option<IgnoreRules>,
    /// Which labels events carry.
    pub(crate) event_labels: LabelFilter,
    /// Repositories whose Secret cannot be read.
    pub(super) broken: Vec<BrokenRepository>,
    /// What webhooks may do.
    pub(crate) webhook: wire::WebhookSettings,
    /// Labels of Applications that become metrics.
    pub(crate) metrics_labels: Vec<String>,
    /// Labels of cluster Secrets that become metrics.
    pub(crate) metrics_cluster_labels: Vec<String>,
    /// Conditions of Applications that become metrics.
    pub(crate) metrics_conditions: Vec<String>,
    /// How much an automated sync may delete without confirmation.
    pub(crate) prune_budget: PruneBudget,
    /// How many of its Applications a set may delete without asking.
    pub(crate) set_budget: PruneBudget,
    /// The controller of sets.
    pub(crate) app_sets: wire::AppSetSettings,
    /// Kinds that an automated sync deletes only with confirmation.
    protected: BTreeSet<GroupKind>,
    /// How often apps run without a trigger.
    pub(crate) reconciliation: wire::ReconciliationSettings,
    /// What happens with kinds that may not be listed.
    pub(crate) respect_rbac: wire::RespectRbac,
    /// How long deleted objects can be brought back.
    pub(crate) keep_tombstones: Duration,
    /// How many of them are kept.
    pub(crate) tombstone_limits: TombstoneLimits,
    /// How often an object is healed before self-heal stops.
    pub(crate) heal_limits: HealLimits,
    /// Settings that apply from the next start.
    pub(crate) start: StartSettings,
    /// Settings that have no effect.
    pub(in crate::config) without_effect: Vec<SettingsProblem>,
    /// Namespaces, besides the control plane's, whose Applications are reconciled.
    pub(in crate::config) application_namespaces: Vec<Glob>,
    /// True if apps may be deployed to the cluster that plumb runs in.
    pub(crate) in_cluster_enabled: bool,
    /// Whether syncs impersonate service accounts.
    pub(crate) impersonation: Impersonation,
    /// The longest a sync may take.
    pub(crate) sync_timeout: Option<Duration>,
    /// Health and actions that users wrote in Lua.
    pub(crate) scripts: Arc<Scripts>,
    /// How long objects may be progressing before they count as stuck.
    pub(crate) patience: ProgressLimits,
    /// True if the last log lines of a failing container may be quoted.
    pub(crate) quote_logs: bool,
    /// True if the status stores the health of each object.
    pub(crate) persist_health: bool,
    /// `argocd-gpg-keys-cm`: public keys by their id.
    pub(crate) gpg_keys: Arc<BTreeMap<String, String>>,
    pub(super) repositories: Repositories,
    pub(super) known_hosts: String,
    /// `argocd-tls-certs-cm`: certificates to trust, by host.
    pub(super) certificates: ConfigData,
    pub(super) submodules: bool,
    /// Bytes of the index of a Helm repository.
    pub(super) max_index: Option<usize>,
    pub(super) allowed_addresses: Vec<AddressRule>,
    pub(super) denied_addresses: Vec<AddressRange>,
}

/// Settings that are read once, when plumb takes the lease. `None` if not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartSettings {
    /// How many apps run at the same time.
    pub(crate) workers: Option<usize>,
    /// The longest one run of a rendering tool may take.
    pub(crate) render_timeout: Option<Duration>,
    /// How many renderings run at the same time.
    pub(crate) render_parallelism: Option<usize>,
    /// Bytes of all manifests of a directory.
    pub(crate) directory_bytes: Option<usize>,
    /// The longest one request to a Git server may take.
    pub(crate) git_timeout: Option<Duration>,
}

impl StartSettings {
    fn of(settings: &wire::Settings) -> Self {
        let controller = &settings.controller;
        let size = |number: Option<_>| number.and_then(|number| usize::try_from(number).ok());
        Self {
            workers: size(controller.status_processors),
            render_timeout: controller.render_timeout,
            render_parallelism: size(controller.render_parallelism),
            directory_bytes: controller.max_directory_bytes.and_then(|bytes| usize::try_from(bytes).ok()),
            git_timeout: controller.git_timeout,
        }
    }
}

/// What the settings are read from, as the cluster holds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsSource {
    /// `ConfigMaps` by name.
    pub(crate) config_maps: BTreeMap<String, ConfigData>,
    /// Repository and credential Secrets by name.
    pub(crate) secrets: BTreeMap<String, SecretData>,
}

/// Without settings, the defaults of empty `ConfigMaps` apply.
impl Default for Settings {
    fn default() -> Self {
        Self::read(&SettingsSource::default(), 0).0
    }
}

impl Settings {
    /// Reads everything. A setting that cannot be read is reported and has its default.
    ///
    /// Long because it is a table: one line per setting.
    pub(crate) fn read(source: &SettingsSource, generation: u64) -> (Self, Vec<SettingsProblem>) {
        let empty = ConfigData::new();
        let map = |name: &str| source.config_maps.get(name).unwrap_or(&empty);
        let (settings, mut problems) = wire::Settings::read(map("argocd-cm"), map("argocd-cmd-params-cm"));
        let update_rules = update_rules(&settings, &mut problems);
        let (repositories, broken) = read_repositories(&source.secrets, &mut problems);
        let scripts = read_scripts(map("argocd-cm"), &mut problems);
        let (plugins, plugin_problems) = read_plugins(map(PLUGINS_CONFIG_MAP));
        problems.extend(plugin_problems);
        let (prune_budget, wrong) = prune_budget(map("argocd-cm"));
        problems.extend(wrong);
        let (set_budget, wrong) = set_budget(map("argocd-cm"));
        problems.extend(wrong);
        let settings = Self {
            generation,
            scripts: Arc::new(scripts),
            patience: progress_limits(&settings.stuck_after),
            quote_logs: quote_logs(map("argocd-cm"), &mut problems),
            persist_health: settings.controller.persist_resource_health,
            reconciliation: settings.reconciliation,
            respect_rbac: settings.respect_rbac,
            prune_budget,
            set_budget,
            app_sets: settings.controller.app_sets.clone(),
            protected: protected_kinds(map("argocd-cm")),
            keep_tombstones: keep_tombstones(map("argocd-cm"), &mut problems),
            tombstone_limits: tombstone_limits(map("argocd-cm"), &mut problems),
            heal_limits: heal_limits(map("argocd-cm"), settings.controller.self_heal, &mut problems),
            start: StartSettings::of(&settings),
            without_effect: wire::without_effect(map("argocd-cm"), map("argocd-cmd-params-cm")),
            filter: KindFilter::new(&settings.exclusions, &settings.inclusions),
            render: Arc::new(RenderSettings {
                allow_unconfined_plugins: allow_unconfined_plugins(map("argocd-cm"), &mut problems),
                ..render_settings(&settings, plugins)
            }),
            ignore: settings.ignore_rules(),
            known_types: settings.customizations.known_types().into(),
            sensitive_fields: settings.sensitive_fields.into(),
            compare_options: CompareOptions {
                server_side_diff: Some(settings.controller.server_side_diff),
                ..CompareOptions::default()
            },
            global_projects: settings.global_projects,
            update_rules,
            event_labels: LabelFilter::new(&settings.event_labels_included, &settings.event_labels_excluded),
            broken,
            webhook: settings.webhook,
            metrics_labels: settings.controller.metrics_application_labels,
            metrics_cluster_labels: settings.controller.metrics_cluster_labels,
            metrics_conditions: settings.controller.metrics_application_conditions,
            sync_timeout: settings.controller.sync_timeout,
            application_namespaces: settings.controller.application_namespaces,
            in_cluster_enabled: settings.in_cluster_enabled,
            impersonation: settings.impersonation,
            known_hosts: map("argocd-ssh-known-hosts-cm").get("ssh_known_hosts").cloned().unwrap_or_default(),
            certificates: map("argocd-tls-certs-cm").clone(),
            gpg_keys: Arc::new(map("argocd-gpg-keys-cm").clone()),
            submodules: settings.controller.git_submodules,
            max_index: settings.controller.max_index_bytes.and_then(|bytes| usize::try_from(bytes).ok()),
            allowed_addresses: settings.controller.allowed_addresses,
            denied_addresses: settings.controller.denied_addresses,
            tracking: settings.tracking,
            repositories,
        };
        (settings, problems)
    }

    /// An app's compare options, with those of the settings where the app sets none.
    pub(crate) fn compare_options(&self, app: &App) -> CompareOptions {
        app.compare_options.or(self.compare_options)
    }

    /// When the judge reports a fight over a field: at the point at which self-heal stops.
    pub(crate) fn heal_limit(&self) -> HealLimit {
        let HealLimits { rounds, window, .. } = self.heal_limits;
        HealLimit { rounds, window: SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX) }
    }

    /// True if the settings name types of fields of this kind.
    pub(crate) fn knows_types_of(&self, kind: &GroupKind) -> bool {
        self.known_types.iter().any(|known| known.kind == *kind)
    }

    /// True if fields of this kind are sensitive.
    pub(crate) fn hides_fields_of(&self, kind: &GroupKind) -> bool {
        self.sensitive_fields.iter().any(|field| field.kind == *kind)
    }

    /// Why an object of this kind is deleted only with confirmation, if the settings say so.
    pub(crate) fn protects(&self, key: &ObjectKey) -> Option<String> {
        self.protected.contains(&key.group_kind()).then(|| format!("{} is a protected kind", key.kind))
    }
}
