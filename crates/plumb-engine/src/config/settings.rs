//! The settings as one run sees them: Argo CD's `ConfigMaps` and repository Secrets, in the form that the parts
//! of the engine want.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::events::event::LabelFilter;
use jiff::SignedDuration;
use plumb_core::app::{App, CompareOptions, IgnoreRule};
use plumb_core::automation::HealLimits;
use plumb_core::desired::KindFilter;
use plumb_core::drift::HealLimit;
use plumb_core::glob::Glob;
use plumb_core::health::ProgressLimits;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{GroupKind, ObjectKey};
use plumb_core::plan::PruneBudget;
use plumb_core::project::normalize_repo_url;
use plumb_core::schema::KnownType;
use plumb_core::tracking::TrackingSettings;
use plumb_crd::settings::{
    self as wire, ConfigData, Impersonation, PLUGINS_CONFIG_MAP, PluginDeclaration, Repositories, Repository,
    RepositoryKind, SecretData, SecretText, SettingsProblem, read_plugins,
};
use plumb_git::{RepoAccess, Secret, SshAccess, TlsAccess};
use plumb_lua::{Limits, Scripts};
use plumb_render::{
    ChartRepository, ClientCertificate, KustomizeVersion, Plugin, PluginDiscovery, RenderSettings,
};

/// The settings as one run sees them.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Changes with every change.
    pub(crate) generation: u64,
    pub(crate) tracking: TrackingSettings,
    pub(crate) filter: KindFilter,
    pub(crate) render: Arc<RenderSettings>,
    /// System-wide ignore rules.
    pub(crate) ignore: Vec<IgnoreRule>,
    /// Fields of custom resources that hold a type of Kubernetes.
    pub(crate) known_types: Arc<[KnownType]>,
    /// Compare options of apps that say nothing else.
    compare_options: CompareOptions,
    /// Projects whose rules are added to others.
    pub(crate) global_projects: Vec<wire::GlobalProject>,
    /// Changes that wake nobody; `None`: every change wakes.
    pub(crate) update_rules: Option<IgnoreRules>,
    /// Which labels events carry.
    pub(crate) event_labels: LabelFilter,
    /// Repositories whose Secret cannot be read: their address, and what is wrong.
    broken: Vec<(String, String)>,
    /// What webhooks may do.
    pub(crate) webhook: wire::WebhookSettings,
    /// Labels of Applications that become metrics.
    pub(crate) metrics_labels: Vec<String>,
    /// Labels of cluster Secrets that become metrics.
    pub(crate) metrics_cluster_labels: Vec<String>,
    /// Conditions of Applications that become metrics.
    pub(crate) metrics_conditions: Vec<String>,
    /// How much an automated sync may delete unasked.
    pub(crate) prune_budget: PruneBudget,
    /// Kinds of which an automated sync deletes nothing unasked.
    protected: BTreeSet<GroupKind>,
    /// How often apps are looked at without being called.
    pub(crate) reconciliation: wire::ReconciliationSettings,
    /// What happens with kinds that may not be listed.
    pub(crate) respect_rbac: wire::RespectRbac,
    /// How long deleted objects can be brought back.
    pub(crate) keep_tombstones: Duration,
    /// How often an object is healed before it is a tug of war.
    pub(crate) heal_limits: HealLimits,
    /// What counts as it was when plumb started to lead.
    pub(crate) start: StartSettings,
    /// What somebody set and has no effect.
    pub(crate) without_effect: Vec<SettingsProblem>,
    /// Namespaces, besides the control plane's, whose Applications are looked at.
    pub(super) application_namespaces: Vec<Glob>,
    /// May apps go to the cluster that plumb itself works in?
    pub(crate) in_cluster_enabled: bool,
    /// Do syncs act as service accounts?
    pub(crate) impersonation: Impersonation,
    /// The longest a sync may take.
    pub(crate) sync_timeout: Option<Duration>,
    /// Health and actions that users wrote in Lua.
    pub(crate) scripts: Arc<Scripts>,
    /// How long objects may be on their way before they count as stuck.
    pub(crate) patience: ProgressLimits,
    /// Is the health of each object stored in the status?
    pub(crate) persist_health: bool,
    /// `argocd-gpg-keys-cm`: public keys by their id.
    pub(crate) gpg_keys: Arc<BTreeMap<String, String>>,
    repositories: Repositories,
    known_hosts: String,
    /// `argocd-tls-certs-cm`: certificates to trust, by host.
    certificates: ConfigData,
    submodules: bool,
}

/// Settings that are read once, when plumb starts to lead. `None`: nobody set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartSettings {
    /// How many apps are looked at at the same time.
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

/// What the settings are read from, as the cluster holds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsSource {
    /// `ConfigMaps` by name.
    pub(crate) config_maps: BTreeMap<String, ConfigData>,
    /// Repository and credential Secrets by name.
    pub(crate) secrets: BTreeMap<String, SecretData>,
}

/// Where there are no settings, they are what empty ones say: nothing is zero because nobody set it.
impl Default for Settings {
    fn default() -> Self {
        Self::read(&SettingsSource::default(), 0).0
    }
}

impl Settings {
    /// Reads everything. What cannot be read is reported and has its default; the rest counts.
    pub(crate) fn read(source: &SettingsSource, generation: u64) -> (Self, Vec<SettingsProblem>) {
        let empty = ConfigData::new();
        let map = |name: &str| source.config_maps.get(name).unwrap_or(&empty);
        let (settings, mut problems) = wire::Settings::read(map("argocd-cm"), map("argocd-cmd-params-cm"));
        let update_rules = update_rules(&settings, &mut problems);
        let mut broken = Vec::new();
        let mut repositories = Repositories::default();
        for (name, secret) in &source.secrets {
            match (secret.secret_type(), Repository::read(secret)) {
                (Some("repository"), Ok(repository)) => repositories.repositories.push(repository),
                (Some("repo-creds"), Ok(template)) => repositories.templates.push(template),
                (Some("repository" | "repo-creds"), Err(reason)) => {
                    if let Some(url) = secret.get("url") {
                        let url = normalize_repo_url(url.expose());
                        broken.push((url, format!("Secret {name}: {reason}")));
                    }
                    problems.push(SettingsProblem { place: format!("Secret {name}"), reason });
                }
                _ => {}
            }
        }
        let (scripts, script_problems) = Scripts::parse(map("argocd-cm"), Limits::default());
        for problem in script_problems {
            // The other reader of the same keys may have told already.
            if !problems.iter().any(|known| known.place.contains(&problem.key)) {
                let place = format!("argocd-cm {}", problem.key);
                problems.push(SettingsProblem { place, reason: problem.what });
            }
        }
        let (plugins, plugin_problems) = read_plugins(map(PLUGINS_CONFIG_MAP));
        problems.extend(plugin_problems);
        let (prune_budget, wrong) = prune_budget(map("argocd-cm"));
        problems.extend(wrong);
        let settings = Self {
            generation,
            scripts: Arc::new(scripts),
            patience: patience(&settings.stuck_after),
            persist_health: settings.controller.persist_resource_health,
            reconciliation: settings.reconciliation,
            respect_rbac: settings.respect_rbac,
            prune_budget,
            protected: protected_kinds(map("argocd-cm")),
            keep_tombstones: keep_tombstones(map("argocd-cm"), &mut problems),
            heal_limits: heal_limits(map("argocd-cm"), settings.controller.self_heal, &mut problems),
            start: StartSettings {
                workers: settings.controller.status_processors.and_then(|n| usize::try_from(n).ok()),
                render_timeout: settings.controller.render_timeout,
                render_parallelism: settings
                    .controller
                    .render_parallelism
                    .and_then(|n| usize::try_from(n).ok()),
                directory_bytes: settings
                    .controller
                    .max_directory_bytes
                    .and_then(|bytes| usize::try_from(bytes).ok()),
                git_timeout: settings.controller.git_timeout,
            },
            without_effect: wire::without_effect(map("argocd-cm"), map("argocd-cmd-params-cm")),
            filter: KindFilter::new(&settings.exclusions, &settings.inclusions),
            render: Arc::new(RenderSettings {
                allow_unconfined_plugins: allow_unconfined_plugins(map("argocd-cm"), &mut problems),
                ..render_settings(&settings, plugins)
            }),
            ignore: ignore_rules(&settings),
            known_types: settings.customizations.known_types().into(),
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
            tracking: settings.tracking,
            repositories,
        };
        (settings, problems)
    }

    /// What is wrong with the Secret of this very repository, if something is. Going on without it would fail
    /// with a message that hides the reason, or read another repository's state.
    pub(crate) fn broken_repository(&self, repo_url: &str) -> Option<&str> {
        let wanted = normalize_repo_url(repo_url);
        self.broken.iter().find(|(url, _)| *url == wanted).map(|(_, reason)| reason.as_str())
    }

    /// What the Secret of a repository asks for and plumb cannot do, if something. Going on without it would be refused by
    /// the server, with a message that hides the reason.
    pub(crate) fn unusable_credentials(&self, repo_url: &str, project: &str) -> Option<String> {
        let credentials = &self.repositories.find(repo_url, project)?.credentials;
        let what = if credentials.github_app.is_some() {
            "a GitHub App"
        } else if credentials.gcp_service_account_key.is_some() {
            "the key of a Google service account"
        } else if credentials.use_azure_workload_identity {
            "an Azure workload identity"
        } else {
            return None;
        };
        Some(format!(
            "its Secret holds {what}, which plumb cannot use yet; use a token (`username` and `password`) or a \
             deploy key (`sshPrivateKey`)"
        ))
    }

    /// An app's compare options, with what the settings say where the app says nothing.
    pub(crate) fn compare_options(&self, app: &App) -> CompareOptions {
        app.compare_options.or(self.compare_options)
    }

    /// When the judge calls it a tug of war: at the same point at which self-heal gives up.
    pub(crate) fn heal_limit(&self) -> HealLimit {
        let HealLimits { rounds, window, .. } = self.heal_limits;
        HealLimit { rounds, window: SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX) }
    }

    /// Do the settings name types of fields of this kind?
    pub(crate) fn knows_types_of(&self, kind: &GroupKind) -> bool {
        self.known_types.iter().any(|known| known.kind == *kind)
    }

    /// Why an object of this kind is not deleted without a person's word, if the settings say so.
    pub(crate) fn protects(&self, key: &ObjectKey) -> Option<String> {
        self.protected.contains(&key.group_kind()).then(|| format!("{} is a protected kind", key.kind))
    }

    /// How to reach a repository: the Secret of this very address, or the longest matching template.
    pub(crate) fn access(&self, repo_url: &str, project: &str) -> RepoAccess {
        let ssh = SshAccess { known_hosts: self.known_hosts.clone(), ..SshAccess::default() };
        let ca = self.certificate(repo_url);
        let Some(repository) = self.repositories.find(repo_url, project) else {
            let tls = TlsAccess { ca, ..TlsAccess::default() };
            return RepoAccess { ssh, tls, submodules: self.submodules, ..RepoAccess::default() };
        };
        let secret = |text: &Option<SecretText>| text.as_ref().map(|text| Secret::new(text.expose()));
        let credentials = &repository.credentials;
        RepoAccess {
            username: credentials.username.clone(),
            password: secret(&credentials.password),
            bearer_token: secret(&credentials.bearer_token),
            force_basic_auth: credentials.force_basic_auth,
            ssh: SshAccess {
                private_key: secret(&credentials.ssh_private_key),
                ignore_host_key: repository.insecure_ignore_host_key || repository.insecure,
                ..ssh
            },
            tls: TlsAccess {
                insecure: repository.insecure,
                ca,
                client_certificate: credentials.tls_client.as_ref().map(|tls| tls.certificate.clone()),
                client_key: credentials.tls_client.as_ref().map(|tls| Secret::new(tls.key.expose())),
            },
            proxy: secret(&repository.proxy),
            no_proxy: repository.no_proxy.clone(),
            submodules: self.submodules,
        }
    }
}

/// The system-wide ignore rules. The rules of an aggregated role are its controller's, where the settings say so.
fn ignore_rules(settings: &wire::Settings) -> Vec<IgnoreRule> {
    let aggregated = settings.compare.ignore_aggregated_roles.then(|| IgnoreRule {
        group: "rbac.authorization.k8s.io".to_owned(),
        kind: "ClusterRole".to_owned(),
        jq_path_expressions: vec!["select(.aggregationRule != null) | .rules".to_owned()],
        ..IgnoreRule::default()
    });
    let mut rules = settings.customizations.ignore_rules(settings.compare.ignore_status);
    rules.extend(aggregated);
    rules
}

/// The rules on changes that wake nobody: those for updates, and the ignored differences with them.
fn update_rules(settings: &wire::Settings, problems: &mut Vec<SettingsProblem>) -> Option<IgnoreRules> {
    let mut rules = settings.customizations.update_rules();
    if rules.is_empty() || !settings.ignore_resource_updates {
        return None;
    }
    if settings.compare.ignore_differences_on_updates {
        rules.extend(settings.customizations.ignore_rules(wire::StatusScope::None));
    }
    let (rules, wrong) = IgnoreRules::compile(rules);
    problems.extend(wrong.into_iter().map(|problem| SettingsProblem {
        place: format!("argocd-cm ignoreResourceUpdates `{}`", problem.expression),
        reason: problem.message,
    }));
    Some(rules)
}

/// `off`, or nothing: then the share and the number count.
const BUDGET: &str = "plumb.prune.budget";
/// More than this share of an app's objects …
const BUDGET_PERCENT: &str = "plumb.prune.budget.percent";
/// … and more than this many of them are not deleted unasked.
const BUDGET_COUNT: &str = "plumb.prune.budget.count";
/// `Kind` or `group/Kind`, separated by commas.
const PROTECTED: &str = "plumb.prune.protected-kinds";

/// How much an automated sync may delete unasked. What cannot be read has its default: nothing is ever deleted
/// because of a typo.
fn prune_budget(map: &ConfigData) -> (PruneBudget, Vec<SettingsProblem>) {
    let mut problems = Vec::new();
    let mut wrong = |key: &str, text: &str, expected: &str| {
        problems.push(SettingsProblem {
            place: format!("argocd-cm {key}"),
            reason: format!("`{text}` is not {expected}"),
        });
    };
    let PruneBudget::Limited { mut share_percent, mut count } = PruneBudget::default() else {
        return (PruneBudget::default(), problems);
    };
    match map.get(BUDGET).map(|text| text.trim()) {
        Some("off") => return (PruneBudget::Off, problems),
        None | Some("" | "on") => {}
        Some(text) => wrong(BUDGET, text, "`on` or `off`"),
    }
    if let Some(text) = map.get(BUDGET_PERCENT) {
        match text.trim().trim_end_matches('%').parse::<u8>() {
            Ok(percent) if percent <= 100 => share_percent = percent,
            Ok(_) | Err(_) => wrong(BUDGET_PERCENT, text, "a share from 0 to 100"),
        }
    }
    if let Some(text) = map.get(BUDGET_COUNT) {
        match text.trim().parse() {
            Ok(number) => count = number,
            Err(_) => wrong(BUDGET_COUNT, text, "a number of objects"),
        }
    }
    (PruneBudget::Limited { share_percent, count }, problems)
}

/// After so many heals of a field …
const TUG_ROUNDS: &str = "plumb.tug-of-war.rounds";
/// … within so many minutes, self-heal gives up.
const TUG_MINUTES: &str = "plumb.tug-of-war.minutes";

fn heal_limits(
    map: &ConfigData,
    waits: wire::SelfHealSettings,
    problems: &mut Vec<SettingsProblem>,
) -> HealLimits {
    let mut number = |key: &str| {
        let text = map.get(key)?.trim();
        let number = text.parse::<u32>().ok().filter(|number| *number > 0);
        if number.is_none() {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {key}"),
                reason: format!("`{text}` is not a number from 1 on"),
            });
        }
        number
    };
    let (rounds, minutes) = (number(TUG_ROUNDS), number(TUG_MINUTES));
    let default = HealLimits::default();
    let limits = HealLimits {
        rounds: rounds.and_then(|rounds| usize::try_from(rounds).ok()).unwrap_or(default.rounds),
        window: minutes.map_or(default.window, |minutes| Duration::from_mins(minutes.into())),
        ..default
    };
    match waits.backoff {
        // As in Argo CD: the fixed wait counts only where the growing one is switched off.
        Some(Duration::ZERO) => {
            let fixed = waits.fixed.unwrap_or_default();
            HealLimits { backoff: fixed, factor: 1, longest: fixed, ..limits }
        }
        backoff => HealLimits {
            backoff: backoff.unwrap_or(limits.backoff),
            factor: waits.factor.map_or(limits.factor, |factor| u32::try_from(factor).unwrap_or(u32::MAX)),
            longest: waits.cap.unwrap_or(limits.longest),
            ..limits
        },
    }
}

/// May plugins run where the kernel cannot keep them from the files of others?
const UNCONFINED_PLUGINS: &str = "plumb.plugins.allow-unconfined";

/// A typo never lets anything out.
fn allow_unconfined_plugins(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> bool {
    match map.get(UNCONFINED_PLUGINS).map(|text| text.trim()) {
        Some("true") => true,
        None | Some("" | "false") => false,
        Some(text) => {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {UNCONFINED_PLUGINS}"),
                reason: format!("`{text}` is not `true` or `false`"),
            });
            false
        }
    }
}

/// Days that deleted objects can be brought back.
const TOMBSTONE_DAYS: &str = "plumb.tombstones.days";

fn keep_tombstones(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> Duration {
    const DAYS: u64 = 30;
    let days = map.get(TOMBSTONE_DAYS).map(|text| text.trim().parse::<u64>().map_err(|_| text));
    let days = match days {
        None => DAYS,
        Some(Ok(days)) => days,
        Some(Err(text)) => {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {TOMBSTONE_DAYS}"),
                reason: format!("`{text}` is not a number of days"),
            });
            DAYS
        }
    };
    Duration::from_hours(days.saturating_mul(24).min(24 * 36_500))
}

fn protected_kinds(map: &ConfigData) -> BTreeSet<GroupKind> {
    let text = map.get(PROTECTED).map(String::as_str).unwrap_or_default();
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let (group, kind) = name.rsplit_once('/').unwrap_or(("", name));
            GroupKind::new(group, kind)
        })
        .collect()
}

impl Settings {
    /// How to reach a Helm repository or registry.
    pub(crate) fn chart_repository(&self, url: &str, project: &str) -> ChartRepository {
        let found = self.repositories.find(url, project);
        let credentials = found.as_ref().map(|found| &found.credentials);
        let is_registry =
            found.as_ref().is_some_and(|found| found.kind == RepositoryKind::Helm { oci: true });
        // A registry may be written without scheme; with `enableOCI` also with one that is not its own.
        let url = if is_registry { url.trim_start_matches("https://") } else { url };
        ChartRepository {
            url: url.to_owned(),
            username: credentials.and_then(|credentials| credentials.username.clone()),
            password: credentials
                .and_then(|credentials| credentials.password.as_ref())
                .map(|password| password.expose().to_owned()),
            pass_credentials: false,
            insecure: found.as_ref().is_some_and(|found| found.insecure),
            ca: self.certificate(url),
            client: credentials.and_then(|credentials| credentials.tls_client.as_ref()).map(|tls| {
                ClientCertificate { certificate: tls.certificate.clone(), key: tls.key.expose().to_owned() }
            }),
            proxy: found
                .as_ref()
                .and_then(|found| found.proxy.as_ref())
                .map(|proxy| proxy.expose().to_owned()),
            no_proxy: found.as_ref().and_then(|found| found.no_proxy.clone()),
            plain_http: found.as_ref().is_some_and(|found| found.insecure_oci_force_http),
        }
    }

    /// The repository that a chart's dependency names: by address, or as `@name` or `alias:name`. `None`: no
    /// repository of this name is registered.
    pub(crate) fn dependency_repository(&self, written: &str, project: &str) -> Option<ChartRepository> {
        let Some(name) = written.strip_prefix('@').or_else(|| written.strip_prefix("alias:")) else {
            return Some(self.chart_repository(written, project));
        };
        let named = self.repositories.repositories.iter().find(|repository| {
            repository.name.as_deref() == Some(name)
                && repository.project.as_deref().is_none_or(|scope| scope == project)
        })?;
        Some(self.chart_repository(&named.url, project))
    }

    /// The certificate that the settings hold for the address's host.
    fn certificate(&self, url: &str) -> Option<String> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        self.certificates.get(host).or_else(|| self.certificates.get(name)).cloned()
    }
}

fn plugin(declared: PluginDeclaration) -> Plugin {
    let discover = match (declared.file_name, declared.find_glob) {
        (Some(pattern), _) => PluginDiscovery::FileName(pattern),
        (None, Some(pattern)) => PluginDiscovery::Find(pattern),
        (None, None) => PluginDiscovery::Named,
    };
    Plugin { init: declared.init, generate: declared.generate, discover }
}

fn render_settings(
    settings: &wire::Settings,
    plugins: BTreeMap<String, PluginDeclaration>,
) -> RenderSettings {
    let tools = &settings.tools;
    let versions = tools.kustomize_versions.iter().map(|(name, version)| {
        let version = KustomizeVersion {
            program: version.path.clone().into(),
            build_options: version.build_options.clone(),
        };
        (name.clone(), version)
    });
    RenderSettings {
        helm: tools.helm,
        kustomize: tools.kustomize,
        jsonnet: tools.jsonnet,
        kustomize_build_options: tools.kustomize_build_options.clone(),
        kustomize_versions: versions.collect(),
        plugins: plugins.into_iter().map(|(name, declared)| (name, plugin(declared))).collect(),
        ..RenderSettings::default()
    }
}

fn patience(stuck_after: &wire::StuckAfter) -> ProgressLimits {
    let length = |length: Duration| SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let by_kind = stuck_after.by_kind.iter().map(|(kind, after)| (kind.clone(), length(*after))).collect();
    ProgressLimits { default: length(stuck_after.default), by_kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Settings, Vec<SettingsProblem>) {
        let data: ConfigData = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let config_maps = BTreeMap::from([("argocd-cm".to_owned(), data)]);
        Settings::read(&SettingsSource { config_maps, ..SettingsSource::default() }, 1)
    }

    #[test]
    fn the_prune_budget_is_a_setting_and_a_typo_keeps_the_default() {
        let budget = |pairs: &[(&str, &str)]| read(pairs).0.prune_budget;
        assert_eq!(budget(&[]), PruneBudget::default());
        assert_eq!(budget(&[(BUDGET, "off")]), PruneBudget::Off);
        let own = PruneBudget::Limited { share_percent: 10, count: 2 };
        assert_eq!(budget(&[(BUDGET_PERCENT, "10%"), (BUDGET_COUNT, "2")]), own);
        let (settings, problems) = read(&[(BUDGET, "of"), (BUDGET_PERCENT, "150"), (BUDGET_COUNT, "-1")]);
        assert_eq!(settings.prune_budget, PruneBudget::default());
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn without_settings_deleted_objects_are_kept_for_a_month() {
        let month = Duration::from_hours(30 * 24);
        assert_eq!(Settings::default().keep_tombstones, month);
        assert_eq!(read(&[]).0.keep_tombstones, month);
        assert_eq!(read(&[(TOMBSTONE_DAYS, "a week")]).0.keep_tombstones, month);
        assert_eq!(read(&[(TOMBSTONE_DAYS, "7")]).0.keep_tombstones, Duration::from_hours(7 * 24));
    }

    #[test]
    fn a_tug_of_war_is_one_after_as_many_rounds_as_the_settings_say() {
        let limit = |pairs: &[(&str, &str)]| read(pairs).0.heal_limit();
        assert_eq!(limit(&[]), HealLimit::default());
        let own = HealLimit { rounds: 3, window: SignedDuration::from_mins(60) };
        assert_eq!(limit(&[(TUG_ROUNDS, "3"), (TUG_MINUTES, " 60")]), own);
        let (settings, problems) = read(&[(TUG_ROUNDS, "0"), (TUG_MINUTES, "an hour")]);
        assert_eq!(settings.heal_limits, HealLimits::default());
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn the_waits_between_heals_are_argo_cds_settings() {
        let waits = |pairs: &[(&str, &str)]| {
            let prefix = "controller.self.heal.";
            let data: ConfigData =
                pairs.iter().map(|(key, value)| (format!("{prefix}{key}"), (*value).into())).collect();
            let config_maps = BTreeMap::from([("argocd-cmd-params-cm".to_owned(), data)]);
            let source = SettingsSource { config_maps, ..SettingsSource::default() };
            let limits = Settings::read(&source, 1).0.heal_limits;
            (limits.backoff.as_secs(), limits.factor, limits.longest.as_secs())
        };
        assert_eq!(waits(&[]), (1, 2, 300), "plumb's own");
        let own = [("backoff.timeout.seconds", "2"), ("backoff.factor", "3"), ("backoff.cap.seconds", "60")];
        assert_eq!(waits(&own), (2, 3, 60));
        assert_eq!(waits(&[("backoff.cap.seconds", "4")]), (1, 2, 4));
        assert_eq!(waits(&[("timeout.seconds", "5")]), (1, 2, 300), "the growing wait is on");
        assert_eq!(waits(&[("timeout.seconds", "5"), ("backoff.timeout.seconds", "0")]), (5, 1, 5));
        assert_eq!(waits(&[("backoff.timeout.seconds", "0")]), (0, 1, 0));
    }

    #[test]
    fn asking_the_server_is_a_setting_and_an_app_has_the_last_word() {
        let options = |value: Option<&str>, annotation: &str| {
            let parameters = value.map(|value| ("controller.diff.server.side".to_owned(), value.to_owned()));
            let parameters: ConfigData = parameters.into_iter().collect();
            let config_maps = BTreeMap::from([("argocd-cmd-params-cm".to_owned(), parameters)]);
            let source = SettingsSource { config_maps, ..SettingsSource::default() };
            CompareOptions::parse(annotation)
                .or(Settings::read(&source, 1).0.compare_options)
                .server_side_diff
        };
        assert_eq!(options(None, ""), Some(false));
        assert_eq!(options(Some("true"), ""), Some(true));
        assert_eq!(options(Some("true"), "ServerSideDiff=false"), Some(false));
        assert_eq!(options(None, "ServerSideDiff=true"), Some(true));
    }

    #[test]
    fn only_a_clear_word_lets_plugins_run_unconfined() {
        let allowed = |text: &str| read(&[(UNCONFINED_PLUGINS, text)]).0.render.allow_unconfined_plugins;
        assert!(allowed("true"));
        assert!(!allowed("false"));
        let (settings, problems) = read(&[(UNCONFINED_PLUGINS, "yes")]);
        assert!(!settings.render.allow_unconfined_plugins);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(!Settings::default().render.allow_unconfined_plugins);
    }

    /// What Argo CD's Secrets and `ConfigMaps` hold reaches those who speak to servers.
    #[test]
    fn keys_and_certificates_reach_repositories_and_charts() {
        let secret = |kind: &str, pairs: &[(&str, &str)]| {
            let labels = [("argocd.argoproj.io/secret-type".to_owned(), kind.to_owned())].into();
            let metadata = plumb_crd::Metadata { labels, ..plumb_crd::Metadata::default() };
            let values =
                pairs.iter().map(|(key, text)| ((*key).to_owned(), SecretText::new(*text))).collect();
            SecretData::new(metadata, values)
        };
        let config = |pairs: &[(&str, &str)]| -> ConfigData {
            pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
        };
        let source = SettingsSource {
            config_maps: BTreeMap::from([
                ("argocd-ssh-known-hosts-cm".to_owned(), config(&[("ssh_known_hosts", "host line")])),
                ("argocd-tls-certs-cm".to_owned(), config(&[("git.example.com", "the authority")])),
            ]),
            secrets: BTreeMap::from([
                (
                    "template".to_owned(),
                    secret(
                        "repo-creds",
                        &[
                            ("url", "https://git.example.com"),
                            ("tlsClientCertData", "certificate"),
                            ("tlsClientCertKey", "key"),
                            ("proxy", "http://proxy"),
                        ],
                    ),
                ),
                (
                    "charts".to_owned(),
                    secret("repository", &[("url", "https://git.example.com/charts"), ("type", "helm")]),
                ),
                (
                    "keys".to_owned(),
                    secret(
                        "repository",
                        &[("url", "git@ssh.example.com:org/r.git"), ("sshPrivateKey", "pem")],
                    ),
                ),
                (
                    "careless".to_owned(),
                    secret("repository", &[("url", "git@old.example.com:r"), ("insecure", "true")]),
                ),
                (
                    "half".to_owned(),
                    secret(
                        "repository",
                        &[("url", "https://half.example.com/r"), ("tlsClientCertData", "certificate")],
                    ),
                ),
            ]),
        };
        let (settings, problems) = Settings::read(&source, 1);
        let git = settings.access("https://git.example.com/r", "default");
        assert_eq!(git.tls.ca.as_deref(), Some("the authority"));
        assert_eq!(git.tls.client_certificate.as_deref(), Some("certificate"));
        assert_eq!(git.tls.client_key.as_ref().map(Secret::expose), Some("key"));
        assert_eq!(git.ssh.known_hosts, "host line");
        for url in ["https://git.example.com/other", "https://git.example.com/charts"] {
            let charts = settings.chart_repository(url, "default");
            assert_eq!(charts.ca.as_deref(), Some("the authority"), "{url}");
            let client = charts.client.expect(url);
            assert_eq!((client.certificate.as_str(), client.key.as_str()), ("certificate", "key"), "{url}");
            assert_eq!(charts.proxy.as_deref(), Some("http://proxy"), "{url}");
        }
        let ssh = settings.access("ssh://git@ssh.example.com/org/r", "default").ssh;
        assert_eq!((ssh.private_key.as_ref().map(Secret::expose), ssh.ignore_host_key), (Some("pem"), false));
        assert!(settings.access("git@old.example.com:r.git", "default").ssh.ignore_host_key);
        // A certificate without its key would be left out, and the server would say something else.
        let reason = settings.broken_repository("https://half.example.com/r").unwrap();
        assert!(reason.contains("tlsClientCertKey"), "{reason}");
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn kinds_can_be_protected() {
        let (settings, _) = read(&[(PROTECTED, "Secret, example.com/Database")]);
        let key = |group: &str, kind: &str| ObjectKey::new(group, kind, None, "x");
        assert!(settings.protects(&key("", "Secret")).is_some());
        assert!(settings.protects(&key("example.com", "Database")).is_some());
        assert!(settings.protects(&key("", "ConfigMap")).is_none());
        assert!(settings.protects(&key("", "Database")).is_none());
    }

    #[test]
    fn credentials_that_cannot_be_used_say_so_and_what_can() {
        const URL: &str = "https://git.example.com/r";
        let said = |credentials: &[(&str, &str)]| {
            let mut data = serde_json::json!({"url": "aHR0cHM6Ly9naXQuZXhhbXBsZS5jb20vcg=="});
            for (key, value) in credentials {
                data[*key] = (*value).into();
            }
            let labels = serde_json::json!({"argocd.argoproj.io/secret-type": "repository"});
            let secret = serde_json::json!({"metadata": {"name": "repo", "labels": labels}, "data": data});
            let (secret, _) = SecretData::read(&secret).unwrap();
            let secrets = BTreeMap::from([("repo".to_owned(), secret)]);
            let source = SettingsSource { secrets, ..SettingsSource::default() };
            Settings::read(&source, 1).0.unusable_credentials(URL, "default")
        };
        let (seven, hunter2, yes) = ("Nw==", "aHVudGVyMg==", "dHJ1ZQ==");
        for (credentials, what) in [
            (&[("githubAppID", seven), ("githubAppPrivateKey", hunter2)][..], "a GitHub App"),
            (&[("gcpServiceAccountKey", hunter2)], "the key of a Google service account"),
            (&[("useAzureWorkloadIdentity", yes)], "an Azure workload identity"),
        ] {
            let said = said(credentials).unwrap();
            assert!(said.contains(what) && said.contains("use a token"), "{said}");
            assert!(!said.contains("hunter2") && !said.contains(hunter2), "{said}");
        }
        assert_eq!(said(&[("username", hunter2), ("password", hunter2)]), None);
    }
}
