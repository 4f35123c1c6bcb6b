//! The settings of `argocd-cm`.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_core::desired::KindRule;
use plumb_core::object::GroupKind;
use plumb_core::tracking::TrackingSettings;

use super::controller::ControllerSettings;
use super::customization::Customizations;
use super::problem::SettingsProblem;
use super::value::{Reader, csv, non_zero};
use crate::application_set::LabelSelector;
use crate::wire::wire;

/// The `data` of a `ConfigMap`.
pub type ConfigData = BTreeMap<String, String>;

/// Everything that `argocd-cm` and `argocd-cmd-params-cm` say to the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How objects are marked as an app's own.
    pub tracking: TrackingSettings,
    /// Kinds that are not looked at.
    pub exclusions: Vec<KindRule>,
    /// The only kinds that are looked at; empty: all.
    pub inclusions: Vec<KindRule>,
    /// Health scripts, actions and ignore rules by kind.
    pub customizations: Customizations,
    /// `resource.compareoptions`.
    pub compare: CompareSettings,
    /// Do changes that the update rules ignore leave apps asleep?
    pub ignore_resource_updates: bool,
    /// What happens with kinds that may not be listed.
    pub respect_rbac: RespectRbac,
    /// Annotations of Secrets whose values are masked.
    pub mask_annotations: Vec<String>,
    /// Labels of objects that are shown.
    pub custom_labels: Vec<String>,
    /// Labels (globs) that events carry on.
    pub event_labels_included: Vec<String>,
    /// Labels (globs) that events do not carry on.
    pub event_labels_excluded: Vec<String>,
    /// Rendering tools.
    pub tools: ToolSettings,
    /// May apps go to the cluster that plumb works in?
    pub in_cluster_enabled: bool,
    /// Projects whose rules are added to others.
    pub global_projects: Vec<GlobalProject>,
    /// Do syncs act as service accounts?
    pub impersonation: Impersonation,
    /// How often Git is looked at without being called.
    pub reconciliation: ReconciliationSettings,
    /// Requests to the webhook.
    pub webhook: WebhookSettings,
    /// Address of the user interface, as users reach it.
    pub url: Option<String>,
    /// The controller's parameters.
    pub controller: ControllerSettings,
    /// How long objects may be `Progressing` before they count as stuck. plumb's own.
    pub stuck_after: StuckAfter,
}

/// `plumb.health.stuckAfter`, and `plumb.health.stuckAfter.<group_Kind>` for single kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckAfter {
    /// For kinds that are not listed.
    pub default: Duration,
    /// By kind.
    pub by_kind: BTreeMap<GroupKind, Duration>,
}

/// `resource.compareoptions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareSettings {
    /// Do the rules of aggregated roles belong to their controller?
    pub ignore_aggregated_roles: bool,
    /// Whose `status` is not compared.
    pub ignore_status: StatusScope,
    /// Do ignore rules also decide which changes wake an app?
    pub ignore_differences_on_updates: bool,
}

/// Whose `status` is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// That of every kind.
    All,
    /// That of custom resource definitions.
    Crds,
    /// That of none.
    None,
}

/// What happens with kinds that may not be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespectRbac {
    /// It is an error.
    Off,
    /// They are left out.
    Normal,
    /// They are left out after the server confirmed it.
    Strict,
}

/// Rendering tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// May Kustomize be used?
    pub kustomize: bool,
    /// May Helm be used?
    pub helm: bool,
    /// May Jsonnet be used?
    pub jsonnet: bool,
    /// Options of `kustomize build`.
    pub kustomize_build_options: String,
    /// Further versions of Kustomize by name.
    pub kustomize_versions: BTreeMap<String, KustomizeVersion>,
}

/// A registered version of Kustomize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KustomizeVersion {
    /// Path of the program.
    pub path: String,
    /// Its own build options; `None`: the general ones.
    pub build_options: Option<String>,
}

/// Projects whose rules are added to all that carry certain labels.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalProject {
    /// Which projects get them.
    pub selector: LabelSelector,
    /// Whose rules.
    pub project: String,
}

/// Do syncs act as service accounts?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impersonation {
    /// No.
    Off,
    /// Where the project names one.
    WhereNamed,
    /// Always; a destination for which the project names none is an error.
    Enforced,
}

/// How often Git is looked at without being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconciliationSettings {
    /// `None`: never.
    pub interval: Option<Duration>,
    /// The longest random delay on top.
    pub jitter: Duration,
    /// How often caches are passed by; `None`: never.
    pub hard_interval: Option<Duration>,
}

/// Requests to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Largest body.
    pub max_bytes: u64,
    /// The longest random delay of a refresh.
    pub jitter: Duration,
    /// From how many apps on refreshes are delayed.
    pub jitter_threshold: u64,
}

wire! {
    /// One entry of `resource.exclusions` or `resource.inclusions`.
    struct FilteredResource {
        /// Globs on API groups.
        "apiGroups" api_groups: Vec<String>,
        /// Exact kinds, or `*`.
        "kinds" kinds: Vec<String>,
        /// Globs on addresses of clusters.
        "clusters" clusters: Vec<String>,
    }

    /// `resource.compareoptions`.
    struct RawCompareOptions {
        /// Do the rules of aggregated roles belong to their controller?
        "ignoreAggregatedRoles" aggregated_roles: bool,
        /// `all`, `crd` or `none`; YAML turns a bare `off` into a boolean.
        "ignoreResourceStatusField" status_field: crate::wire::Raw,
        /// Do ignore rules also decide which changes wake an app?
        "ignoreDifferencesOnResourceUpdates" differences_on_updates: Option<bool>,
    }

    /// One entry of `globalProjects`.
    struct RawGlobalProject {
        /// Which projects get the rules.
        "labelSelector" label_selector: LabelSelector,
        /// Whose rules.
        "projectName" project_name: String,
    }
}

impl Settings {
    /// Reads both maps; either may be empty.
    pub fn read(config: &ConfigData, parameters: &ConfigData) -> (Self, Vec<SettingsProblem>) {
        let mut problems = Vec::new();
        let mut controller_problems = Vec::new();
        let mut reader = Reader::new("argocd-cm", config, &mut problems);
        let settings = Self {
            tracking: tracking(&mut reader),
            exclusions: kind_rules(&mut reader, "resource.exclusions"),
            inclusions: kind_rules(&mut reader, "resource.inclusions"),
            customizations: Customizations::read(&mut reader),
            compare: compare(&mut reader),
            ignore_resource_updates: reader.bool("resource.ignoreResourceUpdatesEnabled", true),
            respect_rbac: respect_rbac(&mut reader),
            mask_annotations: csv(reader.text("resource.sensitive.mask.annotations")),
            custom_labels: csv(reader.text("resource.customLabels")),
            event_labels_included: csv(reader.text("resource.includeEventLabelKeys")),
            event_labels_excluded: csv(reader.text("resource.excludeEventLabelKeys")),
            tools: tools(&mut reader),
            in_cluster_enabled: reader.bool("cluster.inClusterEnabled", true),
            global_projects: reader
                .yaml::<Vec<RawGlobalProject>>("globalProjects")
                .into_iter()
                .map(|raw| GlobalProject { selector: raw.label_selector, project: raw.project_name })
                .collect(),
            impersonation: impersonation(&mut reader),
            reconciliation: ReconciliationSettings {
                interval: non_zero(reader.duration("timeout.reconciliation", Duration::from_mins(2))),
                jitter: reader.duration("timeout.reconciliation.jitter", Duration::from_mins(1)),
                hard_interval: non_zero(reader.duration("timeout.hard.reconciliation", Duration::ZERO)),
            },
            webhook: WebhookSettings {
                max_bytes: reader.number("webhook.maxPayloadSizeMB", 50).saturating_mul(1 << 20),
                jitter: reader.duration("webhook.refresh.jitter", Duration::ZERO),
                jitter_threshold: reader.number("webhook.refresh.jitter.threshold", 10),
            },
            url: Some(reader.text("url").to_owned()).filter(|url| !url.is_empty()),
            stuck_after: stuck_after(&mut reader),
            controller: ControllerSettings::read(parameters, &mut controller_problems),
        };
        problems.append(&mut controller_problems);
        (settings, problems)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::read(&ConfigData::new(), &ConfigData::new()).0
    }
}

impl GlobalProject {
    /// Do its rules count for a project with this name and these labels? Never for itself.
    pub fn concerns(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        name != self.project && self.selector.matches(labels)
    }
}

fn stuck_after(reader: &mut Reader<'_>) -> StuckAfter {
    const KEY: &str = "plumb.health.stuckAfter";
    let default = reader.duration(KEY, Duration::from_mins(15));
    let mut by_kind = BTreeMap::new();
    for (name, _) in reader.with_prefix(&format!("{KEY}.")) {
        let (group, kind) = name.split_once('_').unwrap_or(("", name));
        by_kind.insert(GroupKind::new(group, kind), reader.duration(&format!("{KEY}.{name}"), default));
    }
    StuckAfter { default, by_kind }
}

fn tracking(reader: &mut Reader<'_>) -> TrackingSettings {
    let default = TrackingSettings::default();
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    TrackingSettings {
        method: reader.parsed("application.resourceTrackingMethod", default.method),
        label_key: non_empty(reader.text("application.instanceLabelKey")).unwrap_or(default.label_key),
        installation_id: non_empty(reader.text("installationID")),
    }
}

fn kind_rules(reader: &mut Reader<'_>, key: &str) -> Vec<KindRule> {
    let to_rule = |raw: FilteredResource| KindRule {
        api_groups: raw.api_groups,
        kinds: raw.kinds,
        clusters: raw.clusters,
    };
    reader.yaml::<Vec<FilteredResource>>(key).into_iter().map(to_rule).collect()
}

fn compare(reader: &mut Reader<'_>) -> CompareSettings {
    const KEY: &str = "resource.compareoptions";
    let raw = reader.yaml::<RawCompareOptions>(KEY);
    let ignore_status = match &raw.status_field.0 {
        // Not said: the comparison knows by itself which kinds have a status that only the server writes, and
        // where `status` is ordinary data, it counts.
        serde_json::Value::Null | serde_json::Value::Bool(false) => StatusScope::None,
        serde_json::Value::Bool(true) => StatusScope::All,
        other => match other.as_str() {
            Some("" | "all") => StatusScope::All,
            Some("crd") => StatusScope::Crds,
            Some("none" | "off" | "false") => StatusScope::None,
            Some(_) | None => {
                reader.report(KEY, "ignoreResourceStatusField is all, crd or none; all is used");
                StatusScope::All
            }
        },
    };
    CompareSettings {
        ignore_aggregated_roles: raw.aggregated_roles,
        ignore_status,
        ignore_differences_on_updates: raw.differences_on_updates.unwrap_or(true),
    }
}

fn respect_rbac(reader: &mut Reader<'_>) -> RespectRbac {
    const KEY: &str = "resource.respectRBAC";
    match reader.text(KEY) {
        "" => RespectRbac::Off,
        "normal" => RespectRbac::Normal,
        "strict" => RespectRbac::Strict,
        _ => {
            reader.report(KEY, "it is normal, strict or not set");
            RespectRbac::Off
        }
    }
}

fn impersonation(reader: &mut Reader<'_>) -> Impersonation {
    let enabled = reader.bool("application.sync.impersonation.enabled", false);
    let enforced = reader.bool("application.sync.impersonation.enforced", true);
    match (enabled, enforced) {
        (false, _) => Impersonation::Off,
        (true, false) => Impersonation::WhereNamed,
        (true, true) => Impersonation::Enforced,
    }
}

fn tools(reader: &mut Reader<'_>) -> ToolSettings {
    let mut versions: BTreeMap<String, KustomizeVersion> = BTreeMap::new();
    for prefix in ["kustomize.version.", "kustomize.path."] {
        for (name, path) in reader.with_prefix(prefix) {
            path.clone_into(&mut versions.entry(name.to_owned()).or_default().path);
        }
    }
    for (name, options) in reader.with_prefix("kustomize.buildOptions.") {
        if let Some(version) = versions.get_mut(name) {
            version.build_options = Some(options.to_owned());
        }
    }
    ToolSettings {
        kustomize: reader.bool("kustomize.enable", true),
        helm: reader.bool("helm.enable", true),
        jsonnet: reader.bool("jsonnet.enable", true),
        kustomize_build_options: reader.text("kustomize.buildOptions").to_owned(),
        kustomize_versions: versions,
    }
}
