//! The settings of `argocd-cm`.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_core::app::IgnoreRule;
use plumb_core::desired::KindRule;
use plumb_core::object::GroupKind;
use plumb_core::schema::SensitiveField;
use plumb_core::tracking::TrackingSettings;

use super::controller::ControllerSettings;
use super::customization::Customizations;
use super::problem::SettingsProblem;
use super::value::{AskedKeys, Reader, ValueForm, csv, non_zero};
use crate::application_set::LabelSelector;
use crate::wire::wire;

/// The key of the tracking method. Where it is not set, the version of Argo CD decides.
pub const TRACKING_METHOD: &str = "application.resourceTrackingMethod";

/// The `data` of a `ConfigMap`.
pub type ConfigData = BTreeMap<String, String>;

/// The settings of `argocd-cm` and `argocd-cmd-params-cm` that the engine uses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How objects are tracked.
    pub tracking: TrackingSettings,
    /// Kinds that are excluded.
    pub exclusions: Vec<KindRule>,
    /// The only kinds that are included; empty: all.
    pub inclusions: Vec<KindRule>,
    /// Health scripts, actions and ignore rules by kind.
    pub customizations: Customizations,
    /// `resource.compareoptions`.
    pub compare: CompareSettings,
    /// Do not refresh an app for changes that the update rules ignore.
    pub ignore_resource_updates: bool,
    /// How kinds are treated that plumb may not list.
    pub respect_rbac: RespectRbac,
    /// Annotations of Secrets whose values are masked.
    pub mask_annotations: Vec<String>,
    /// Fields of custom resources whose values are secrets. Not in Argo CD.
    pub sensitive_fields: Vec<SensitiveField>,
    /// Labels that are shown for objects.
    pub custom_labels: Vec<String>,
    /// Labels (globs) of Applications that are copied to events.
    pub event_labels_included: Vec<String>,
    /// Labels (globs) of Applications that are not copied to events.
    pub event_labels_excluded: Vec<String>,
    /// Rendering tools.
    pub tools: ToolSettings,
    /// Allow apps in the cluster that plumb runs in.
    pub in_cluster_enabled: bool,
    /// Projects whose rules are added to others.
    pub global_projects: Vec<GlobalProject>,
    /// Whether syncs impersonate service accounts.
    pub impersonation: Impersonation,
    /// How often Git is polled.
    pub reconciliation: ReconciliationSettings,
    /// Limits of the webhook.
    pub webhook: WebhookSettings,
    /// Address of the user interface, as users reach it.
    pub url: Option<String>,
    /// The controller's parameters.
    pub controller: ControllerSettings,
    /// How long objects may be `Progressing` before they are reported as stuck. Not in Argo CD.
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
    /// Ignore the rules of aggregated roles, which a controller writes.
    pub ignore_aggregated_roles: bool,
    /// The kinds whose `status` is not compared.
    pub ignore_status: StatusScope,
    /// Do not refresh an app for changes that ignore rules cover.
    pub ignore_differences_on_updates: bool,
}

/// The kinds whose `status` is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// Every kind.
    All,
    /// Custom resource definitions.
    Crds,
    /// No kind.
    None,
}

/// How kinds are treated that plumb may not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespectRbac {
    /// It is an error.
    Off,
    /// They are skipped.
    Normal,
    /// They are skipped after the server confirmed that access is denied.
    Strict,
}

/// Rendering tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// Enable Kustomize.
    pub kustomize: bool,
    /// Enable Helm.
    pub helm: bool,
    /// Enable Jsonnet.
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
    /// Build options of this version; `None`: the general ones.
    pub build_options: Option<String>,
}

/// A project whose rules are added to projects with certain labels.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalProject {
    /// The projects that get the rules.
    pub selector: LabelSelector,
    /// The project with the rules.
    pub project: String,
}

/// Whether syncs impersonate service accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impersonation {
    /// No.
    Off,
    /// Where the project names one.
    WhereNamed,
    /// Always; a destination for which the project names none is an error.
    Enforced,
}

/// How often Git is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconciliationSettings {
    /// `None`: never.
    pub interval: Option<Duration>,
    /// Longest random delay that is added.
    pub jitter: Duration,
    /// Interval of hard refreshes, which bypass caches; `None`: never.
    pub hard_interval: Option<Duration>,
}

/// Limits of the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Largest body.
    pub max_bytes: u64,
    /// The longest random delay of a refresh.
    pub jitter: Duration,
    /// Number of apps from which refreshes are delayed.
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
        /// Ignore the rules of aggregated roles, which a controller writes.
        "ignoreAggregatedRoles" aggregated_roles: bool,
        /// `all`, `crd` or `none`; YAML turns a bare `off` into a boolean.
        "ignoreResourceStatusField" status_field: crate::wire::Raw,
        /// Do not refresh an app for changes that ignore rules cover.
        "ignoreDifferencesOnResourceUpdates" differences_on_updates: Option<bool>,
    }

    /// One entry of `globalProjects`.
    struct RawGlobalProject {
        /// Which projects get the rules.
        "labelSelector" label_selector: LabelSelector,
        /// The project with the rules.
        "projectName" project_name: String,
    }
}

impl Settings {
    /// Reads both maps; either may be empty.
    pub fn read(config: &ConfigData, parameters: &ConfigData) -> (Self, Vec<SettingsProblem>) {
        Self::read_noting(config, parameters, None)
    }

    /// The system-wide ignore rules. If the settings say so, the rules of an aggregated role belong to its controller.
    pub fn ignore_rules(&self) -> Vec<IgnoreRule> {
        let aggregated = self.compare.ignore_aggregated_roles.then(|| IgnoreRule {
            group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            jq_path_expressions: vec!["select(.aggregationRule != null) | .rules".to_owned()],
            ..IgnoreRule::default()
        });
        let mut rules = self.customizations.ignore_rules(self.compare.ignore_status);
        rules.extend(aggregated);
        rules
    }

    /// The keys that are read, by object, with the form of their values. Keys that begin with a prefix are not among them.
    pub(crate) fn keys() -> impl Iterator<Item = (&'static str, String, ValueForm)> {
        let asked = AskedKeys::default();
        Self::read_noting(&ConfigData::new(), &ConfigData::new(), Some(&asked));
        asked.into_keys()
    }

    fn read_noting(
        config: &ConfigData,
        parameters: &ConfigData,
        asked: Option<&AskedKeys>,
    ) -> (Self, Vec<SettingsProblem>) {
        let mut problems = Vec::new();
        let mut controller_problems = Vec::new();
        let mut reader = Reader::new("argocd-cm", config, &mut problems, asked);
        let settings = Self {
            tracking: tracking(&mut reader),
            exclusions: kind_rules(&mut reader, "resource.exclusions"),
            inclusions: kind_rules(&mut reader, "resource.inclusions"),
            customizations: Customizations::read(&mut reader),
            compare: compare(&mut reader),
            ignore_resource_updates: reader.bool("resource.ignoreResourceUpdatesEnabled", true),
            respect_rbac: respect_rbac(&mut reader),
            mask_annotations: csv(reader.text("resource.sensitive.mask.annotations")),
            sensitive_fields: sensitive_fields(&mut reader),
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
                max_bytes: webhook_max_bytes(&mut reader),
                jitter: reader.duration("webhook.refresh.jitter", Duration::ZERO),
                jitter_threshold: reader.number("webhook.refresh.jitter.threshold", 10),
            },
            url: Some(reader.text("url").to_owned()).filter(|url| !url.is_empty()),
            stuck_after: stuck_after(&mut reader),
            controller: ControllerSettings::read(parameters, &mut controller_problems, asked),
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
    /// True if its rules apply to a project with this name and these labels. Never for itself.
    pub fn concerns(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        name != self.project && self.selector.matches(labels)
    }
}

/// Any sender can post a body before its signature is known, so it is smaller than Argo CD's 50 MB. Argo CD's setting may
/// raise it to 10 MB: plumb reads a few bodies at a time into memory.
fn webhook_max_bytes(reader: &mut Reader<'_>) -> u64 {
    const KEY: &str = "webhook.maxPayloadSizeMB";
    const MOST: u64 = 10;
    let megabytes = reader.number(KEY, 1);
    if megabytes > MOST {
        reader.report(KEY, format_args!("larger than {MOST}; {MOST} is used"));
    }
    megabytes.min(MOST) << 20
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

/// `group/Kind: [JSON pointers]`; `*` in a pointer is every key or item.
fn sensitive_fields(reader: &mut Reader<'_>) -> Vec<SensitiveField> {
    const KEY: &str = "resource.sensitive.mask.fields";
    let mut fields = SensitiveField::built_in();
    for (name, pointers) in reader.yaml::<BTreeMap<String, Vec<String>>>(KEY) {
        let (group, kind) = name.rsplit_once('/').unwrap_or(("", &name));
        for pointer in pointers {
            match SensitiveField::new(GroupKind::new(group, kind), &pointer) {
                Some(field) => fields.push(field),
                None => reader.report(KEY, format!("`{pointer}` is not a JSON pointer to a field of {name}")),
            }
        }
    }
    fields
}

fn tracking(reader: &mut Reader<'_>) -> TrackingSettings {
    let default = TrackingSettings::default();
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    TrackingSettings {
        method: reader.parsed(TRACKING_METHOD, default.method),
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
        // Not set: the comparison knows which kinds have a status that only the server writes. Elsewhere `status` is
        // ordinary data and is compared.
        serde_json::Value::Null | serde_json::Value::Bool(false) => StatusScope::None,
        serde_json::Value::Bool(true) => StatusScope::All,
        other => match other.as_str() {
            Some("" | "all") => StatusScope::All,
            Some("crd") => StatusScope::Crds,
            Some("none" | "off" | "false") => StatusScope::None,
            Some(_) | None => {
                reader.report(KEY, "ignoreResourceStatusField must be all, crd or none; all is used");
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
            reader.report(KEY, "it must be normal, strict or not set");
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
