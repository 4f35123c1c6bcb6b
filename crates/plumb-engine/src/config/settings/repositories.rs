//! How to reach repositories and chart servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::project::normalize_repo_url;
use plumb_core::source::AddressPolicy;
use plumb_crd::settings::{
    Repositories, Repository, RepositoryKind, SecretData, SecretText, SettingsProblem,
};
use plumb_git::{RepoAccess, Secret, SshAccess, TlsAccess};
use plumb_render::{ChartRepository, ClientCertificate};

use super::Settings;

/// A repository whose Secret cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrokenRepository {
    /// Its normalized address.
    url: String,
    /// The project that the Secret is for, if it is for one only.
    project: Option<String>,
    /// The Secret, and what is wrong with it.
    reason: String,
}

/// Reads the repository Secrets. Also returns the repositories whose Secret cannot be read.
pub(super) fn read_repositories(
    secrets: &BTreeMap<String, SecretData>,
    problems: &mut Vec<SettingsProblem>,
) -> (Repositories, Vec<BrokenRepository>) {
    let mut broken = Vec::new();
    let mut repositories = Repositories::default();
    for (name, secret) in secrets {
        match (secret.secret_type(), Repository::read(secret)) {
            (Some("repository"), Ok(repository)) => repositories.repositories.push(repository),
            (Some("repo-creds"), Ok(template)) => repositories.templates.push(template),
            (Some("repository" | "repo-creds"), Err(reason)) => {
                if let Some(url) = secret.get("url") {
                    broken.push(BrokenRepository {
                        url: normalize_repo_url(url.expose()),
                        project: secret
                            .get("project")
                            .map(|project| project.expose().trim().to_owned())
                            .filter(|project| !project.is_empty()),
                        reason: format!("Secret {name}: {reason}"),
                    });
                }
                problems.push(SettingsProblem { place: format!("Secret {name}"), reason });
            }
            _ => {}
        }
    }
    (repositories, broken)
}

impl Settings {
    /// What is wrong with the Secret that a project would use for this very repository, if something is. Going on without it
    /// would fail with a message that hides the reason, or read another repository's state. A Secret of another project
    /// does not matter, nor does one for all projects if this project has one of its own, or if another one can be read.
    pub(crate) fn broken_repository(&self, repo_url: &str, project: &str) -> Option<&str> {
        let wanted = normalize_repo_url(repo_url);
        for scope in [Some(project), None] {
            let same = self.repositories.repositories.iter().filter(|repository| {
                repository.project.as_deref() == scope && normalize_repo_url(&repository.url) == wanted
            });
            if same.count() > 0 {
                return None;
            }
            let mut broken = self.broken.iter();
            let broken = broken.find(|broken| broken.project.as_deref() == scope && broken.url == wanted);
            if let Some(broken) = broken {
                return Some(&broken.reason);
            }
        }
        None
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

    /// The repositories that are registered for one project alone, by the name of the project.
    pub(in crate::config) fn scoped_repositories(&self) -> BTreeMap<String, Vec<String>> {
        let mut scoped: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for repository in &self.repositories.repositories {
            if let Some(project) = &repository.project {
                scoped.entry(project.clone()).or_default().push(repository.url.clone());
            }
        }
        scoped
    }

    /// How to reach a repository: the Secret of this very address, or the longest matching template.
    pub(crate) fn access(&self, repo_url: &str, project: &str) -> RepoAccess {
        self.access_as(repo_url, self.repositories.find(repo_url, project).as_ref())
    }

    /// A repository that is not registered yet, with the credentials that are known where it has none of its own.
    pub(crate) fn complete(&self, repository: Repository) -> Repository {
        self.repositories.complete(repository)
    }

    /// How to reach a repository with what is known of it.
    pub(crate) fn access_as(&self, repo_url: &str, repository: Option<&Repository>) -> RepoAccess {
        let ssh = SshAccess { known_hosts: self.known_hosts.clone(), ..SshAccess::default() };
        let ca = self.certificate(repo_url);
        let Some(repository) = repository else {
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
            ..RepoAccess::default()
        }
    }

    /// How to reach a Helm repository or registry.
    pub(crate) fn chart_repository(&self, url: &str, project: &str) -> ChartRepository {
        self.chart_repository_as(url, self.repositories.find(url, project).as_ref())
    }

    /// How to reach a Helm repository or registry with what is known of it.
    pub(crate) fn chart_repository_as(&self, url: &str, found: Option<&Repository>) -> ChartRepository {
        let credentials = found.map(|found| &found.credentials);
        let is_registry = found.is_some_and(|found| found.kind == RepositoryKind::Helm { oci: true });
        // A registry may be written without scheme; with `enableOCI` also with one that is not its own.
        let url = if is_registry { url.strip_prefix("https://").unwrap_or(url) } else { url };
        ChartRepository {
            url: url.to_owned(),
            username: credentials.and_then(|credentials| credentials.username.clone()),
            password: credentials
                .and_then(|credentials| credentials.password.as_ref())
                .map(|password| password.expose().to_owned()),
            pass_credentials: None,
            insecure: found.is_some_and(|found| found.insecure),
            ca: self.certificate(url),
            client: credentials.and_then(|credentials| credentials.tls_client.as_ref()).map(|tls| {
                ClientCertificate { certificate: tls.certificate.clone(), key: tls.key.expose().to_owned() }
            }),
            proxy: found.and_then(|found| found.proxy.as_ref()).map(|proxy| proxy.expose().to_owned()),
            no_proxy: found.and_then(|found| found.no_proxy.clone()),
            plain_http: found.is_some_and(|found| found.insecure_oci_force_http),
            max_index: self.max_index,
            ..ChartRepository::default()
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

    /// Which servers may be connected to for a project: those of the options, with the exceptions of the settings and
    /// the repositories that are registered.
    pub(crate) fn addresses(&self, options: &AddressPolicy, project: &str) -> Arc<AddressPolicy> {
        let policy = options.with_declared(self.repositories.urls(project));
        let (allowed, denied) =
            (self.allowed_addresses.iter().cloned(), self.denied_addresses.iter().copied());
        Arc::new(policy.with_rules(allowed, denied))
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
