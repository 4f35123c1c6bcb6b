//! The settings as one run sees them: Argo CD's `ConfigMaps` and repository Secrets, in the form that the parts
//! of the engine want.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use plumb_core::app::IgnoreRule;
use plumb_core::desired::KindFilter;
use plumb_core::health::Patience;
use plumb_core::tracking::TrackingSettings;
use plumb_crd::settings::{
    self as wire, ConfigData, Repositories, Repository, SecretData, SecretText, SettingsProblem,
};
use plumb_git::{RepoAccess, Secret, SshAccess, TlsAccess};
use plumb_lua::{Limits, Scripts};
use plumb_render::{KustomizeVersion, RenderSettings};

/// The settings as one run sees them.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Changes with every change.
    pub(crate) generation: u64,
    pub(crate) tracking: TrackingSettings,
    pub(crate) filter: KindFilter,
    pub(crate) render: Arc<RenderSettings>,
    /// System-wide ignore rules.
    pub(crate) ignore: Vec<IgnoreRule>,
    /// The longest a sync may take.
    pub(crate) sync_timeout: Option<Duration>,
    /// Health and actions that users wrote in Lua.
    pub(crate) scripts: Arc<Scripts>,
    /// How long objects may be on their way before they count as stuck.
    pub(crate) patience: Patience,
    /// Is the health of each object stored in the status?
    pub(crate) persist_health: bool,
    repositories: Repositories,
    known_hosts: String,
    submodules: bool,
}

/// What the settings are read from, as the cluster holds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsSource {
    /// `ConfigMaps` by name.
    pub(crate) config_maps: BTreeMap<String, ConfigData>,
    /// Repository and credential Secrets by name.
    pub(crate) secrets: BTreeMap<String, SecretData>,
}

impl Settings {
    /// Reads everything. What cannot be read is reported and has its default; the rest counts.
    pub(crate) fn read(source: &SettingsSource, generation: u64) -> (Self, Vec<SettingsProblem>) {
        let empty = ConfigData::new();
        let map = |name: &str| source.config_maps.get(name).unwrap_or(&empty);
        let (settings, mut problems) = wire::Settings::read(map("argocd-cm"), map("argocd-cmd-params-cm"));
        let mut repositories = Repositories::default();
        for (name, secret) in &source.secrets {
            match (secret.secret_type(), Repository::read(secret)) {
                (Some("repository"), Ok(repository)) => repositories.repositories.push(repository),
                (Some("repo-creds"), Ok(template)) => repositories.templates.push(template),
                (Some("repository" | "repo-creds"), Err(reason)) => {
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
        let settings = Self {
            generation,
            scripts: Arc::new(scripts),
            patience: patience(&settings.stuck_after),
            persist_health: settings.controller.persist_resource_health,
            filter: KindFilter::new(&settings.exclusions, &settings.inclusions),
            render: Arc::new(render_settings(&settings)),
            ignore: settings.customizations.ignore_rules(settings.compare.ignore_status),
            sync_timeout: settings.controller.sync_timeout,
            known_hosts: map("argocd-ssh-known-hosts-cm").get("ssh_known_hosts").cloned().unwrap_or_default(),
            submodules: settings.controller.git_submodules,
            tracking: settings.tracking,
            repositories,
        };
        (settings, problems)
    }

    /// How to reach a repository: the Secret of this very address, or the longest matching template.
    pub(crate) fn access(&self, repo_url: &str, project: &str) -> RepoAccess {
        let ssh = SshAccess { known_hosts: self.known_hosts.clone(), ..SshAccess::default() };
        let Some(repository) = self.repositories.find(repo_url, project) else {
            return RepoAccess { ssh, submodules: self.submodules, ..RepoAccess::default() };
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
                ca: None,
                client_certificate: credentials.tls_client.as_ref().map(|tls| tls.certificate.clone()),
                client_key: credentials.tls_client.as_ref().map(|tls| Secret::new(tls.key.expose())),
            },
            proxy: secret(&repository.proxy),
            no_proxy: repository.no_proxy.clone(),
            submodules: self.submodules,
        }
    }
}

fn render_settings(settings: &wire::Settings) -> RenderSettings {
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
        ..RenderSettings::default()
    }
}

fn patience(stuck_after: &wire::StuckAfter) -> Patience {
    let length = |length: Duration| SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let by_kind = stuck_after.by_kind.iter().map(|(kind, after)| (kind.clone(), length(*after))).collect();
    Patience { default: length(stuck_after.default), by_kind }
}
