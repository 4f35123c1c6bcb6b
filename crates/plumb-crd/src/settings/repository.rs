//! Repositories and their credentials, from Secrets.

use plumb_core::project::normalize_repo_url;
use plumb_core::source::RepoAddress;

use super::{SecretData, SecretText};

/// The kind of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryKind {
    /// A Git repository.
    Git,
    /// A Helm repository, or with `oci` a registry of charts.
    Helm {
        /// True for an OCI registry.
        oci: bool,
    },
    /// An OCI registry of manifests.
    Oci,
}

/// A Secret of type `repository` or `repo-creds`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the Secret")]
pub struct Repository {
    /// Its address; for `repo-creds` the beginning of addresses.
    pub url: String,
    /// Its kind.
    pub kind: RepositoryKind,
    /// Name for users and for chart dependencies.
    pub name: Option<String>,
    /// The project it is registered for, if it is for one only.
    pub project: Option<String>,
    /// How to get in.
    pub credentials: Credentials,
    /// Accept any certificate.
    pub insecure: bool,
    /// Accept any ssh host key.
    pub insecure_ignore_host_key: bool,
    /// Fetch large files.
    pub enable_lfs: bool,
    /// Talk http to an OCI registry.
    pub insecure_oci_force_http: bool,
    /// Proxy for http(s); may contain a password.
    pub proxy: Option<SecretText>,
    /// Hosts that are reached without the proxy.
    pub no_proxy: Option<String>,
    /// How many commits to fetch; `None`: all.
    pub depth: Option<u64>,
    /// False if it was registered by somebody who may register repositories of one project only: then its address is judged
    /// like that of an Application.
    pub declares_address: bool,
}

/// The key of a Secret that says `false` if the address of the repository is not the operator's.
pub const DECLARES_ADDRESS: &str = "plumb.dev-declares-address";

/// How to get in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub username: Option<String>,
    /// Password or token.
    pub password: Option<SecretText>,
    /// Token sent as `Authorization: Bearer`.
    pub bearer_token: Option<SecretText>,
    /// Private key for ssh.
    pub ssh_private_key: Option<SecretText>,
    /// Client certificate.
    pub tls_client: Option<TlsClient>,
    /// A GitHub App.
    pub github_app: Option<GithubApp>,
    /// Key of a Google service account.
    pub gcp_service_account_key: Option<SecretText>,
    /// Send basic credentials with the first request.
    pub force_basic_auth: bool,
    /// Use the identity that Azure gives the workload.
    pub use_azure_workload_identity: bool,
}

/// A client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClient {
    /// Certificate (PEM).
    pub certificate: String,
    /// Its key (PEM).
    pub key: SecretText,
}

/// A GitHub App that authenticates in place of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubApp {
    /// Its id.
    pub id: u64,
    /// Id of its installation; `None`: found by the organisation.
    pub installation_id: Option<u64>,
    /// Its private key.
    pub private_key: SecretText,
    /// Address of a GitHub Enterprise server's API.
    pub enterprise_base_url: Option<String>,
}

impl Credentials {
    /// True if no credentials are set.
    pub fn is_empty(&self) -> bool {
        *self == Self { force_basic_auth: self.force_basic_auth, ..Self::default() }
    }

    fn read(secret: &SecretData) -> Result<Self, String> {
        let get = |key: &str| secret.get(key).cloned();
        let tls_client = match (secret.text("tlsClientCertData"), get("tlsClientCertKey")) {
            (Some(certificate), Some(key)) => Some(TlsClient { certificate, key }),
            (None, None) => None,
            (Some(_), None) => return Err("tlsClientCertKey: missing beside tlsClientCertData".to_owned()),
            (None, Some(_)) => return Err("tlsClientCertData: missing beside tlsClientCertKey".to_owned()),
        };
        let github_app = match (secret.number("githubAppID")?, get("githubAppPrivateKey")) {
            (Some(id), Some(private_key)) => Some(GithubApp {
                id,
                installation_id: secret.number("githubAppInstallationID")?.filter(|id| *id > 0),
                private_key,
                enterprise_base_url: secret.text("githubAppEnterpriseBaseUrl"),
            }),
            (None | Some(_), None) | (None, Some(_)) => None,
        };
        Ok(Self {
            username: secret.text("username"),
            password: get("password"),
            bearer_token: get("bearerToken"),
            ssh_private_key: get("sshPrivateKey"),
            tls_client,
            github_app,
            gcp_service_account_key: get("gcpServiceAccountKey"),
            force_basic_auth: secret.bool("forceHttpBasicAuth")?,
            use_azure_workload_identity: secret.bool("useAzureWorkloadIdentity")?,
        })
    }
}

impl Repository {
    /// Reads a Secret of type `repository` or `repo-creds`. The error names the key that is wrong.
    pub fn read(secret: &SecretData) -> Result<Self, String> {
        let url = secret.text("url").ok_or("url: missing")?;
        let oci = secret.bool("enableOCI")?;
        let kind = match secret.text("type").as_deref() {
            _ if url.starts_with("oci://") => RepositoryKind::Oci,
            None | Some("git") => RepositoryKind::Git,
            Some("helm") => RepositoryKind::Helm { oci },
            Some("oci") => RepositoryKind::Oci,
            Some(_) => return Err("type: expected git, helm or oci".to_owned()),
        };
        Ok(Self {
            url,
            kind,
            name: secret.text("name"),
            project: secret.text("project"),
            credentials: Credentials::read(secret)?,
            insecure: secret.bool("insecure")?,
            insecure_ignore_host_key: secret.bool("insecureIgnoreHostKey")?,
            enable_lfs: secret.bool("enableLfs")?,
            insecure_oci_force_http: secret.bool("insecureOCIForceHttp")?,
            proxy: secret.get("proxy").cloned(),
            no_proxy: secret.text("noProxy"),
            depth: secret.number("depth")?.filter(|depth| *depth > 0),
            declares_address: secret.text(DECLARES_ADDRESS).as_deref() != Some("false"),
        })
    }
}

impl Repository {
    /// With a template's credentials. The repository of one project is then reached as the template says: whoever
    /// registers repositories of a project may not lead the credentials of others through a proxy, or to a server
    /// without a known certificate.
    fn with_template(self, template: &Self) -> Self {
        let reached = if self.project.is_some() {
            self.reached_as(template)
        } else {
            Self {
                proxy: self.proxy.clone().or_else(|| template.proxy.clone()),
                no_proxy: self.no_proxy.clone().or_else(|| template.no_proxy.clone()),
                ..self
            }
        };
        Self { credentials: template.credentials.clone(), ..reached }
    }

    /// With the proxy and the checks of another one.
    fn reached_as(self, other: &Self) -> Self {
        Self {
            insecure: other.insecure,
            insecure_ignore_host_key: other.insecure_ignore_host_key,
            insecure_oci_force_http: other.insecure_oci_force_http,
            proxy: other.proxy.clone(),
            no_proxy: other.no_proxy.clone(),
            ..self
        }
    }
}

/// All registered repositories and credential templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repositories {
    /// Secrets of type `repository`.
    pub repositories: Vec<Repository>,
    /// Secrets of type `repo-creds`.
    pub templates: Vec<Repository>,
}

impl Repositories {
    /// How to reach an address on behalf of a project: the repository of this very address (the project's
    /// own first, then one that is for all), with the credentials of the longest matching template where it
    /// has none of its own. `None`: nothing is known, it is reached without credentials.
    pub fn find(&self, url: &str, project: &str) -> Option<Repository> {
        // An address that clients could read in two ways gets no credentials.
        let wanted = RepoAddress::parse(url).ok()?.normal();
        let is_same = |repository: &&Repository| normalize_repo_url(&repository.url) == wanted;
        let scoped = |repository: &&Repository| repository.project.as_deref() == Some(project);
        let shared = |repository: &&Repository| repository.project.is_none();
        let mut same = self.repositories.iter().filter(is_same);
        let registered = same.clone().find(scoped).or_else(|| same.find(shared));
        let template = self.template(&wanted);
        match (registered, template) {
            (Some(registered), Some(template)) if registered.credentials.is_empty() => {
                Some(registered.clone().with_template(template))
            }
            (Some(registered), _) => Some(registered.clone()),
            (None, Some(template)) => {
                Some(Repository { url: url.to_owned(), name: None, ..template.clone() })
            }
            (None, None) => None,
        }
    }

    /// A repository that is not registered yet, as it is reached: where it brings no credentials, with those that are
    /// known. A registered repository's credentials go the way that its own Secret names, never the way that the
    /// caller names: the caller may not know them.
    pub fn complete(&self, repository: Repository) -> Repository {
        if !repository.credentials.is_empty() {
            return repository;
        }
        let project = repository.project.as_deref().unwrap_or_default();
        let Ok(address) = RepoAddress::parse(&repository.url) else { return repository };
        let wanted = address.normal();
        let mut same = self.repositories.iter().filter(|known| {
            normalize_repo_url(&known.url) == wanted
                && !known.credentials.is_empty()
                && known.project.as_deref().is_none_or(|scope| scope == project)
        });
        let own = same.clone().find(|known| known.project.is_some()).or_else(|| same.next());
        match (own, self.template(&wanted)) {
            (Some(own), _) => {
                let reached = repository.reached_as(own);
                Repository { credentials: own.credentials.clone(), ..reached }
            }
            (None, Some(template)) => repository.with_template(template),
            (None, None) => repository,
        }
    }

    /// The addresses that the operator registered for a project or for all.
    pub fn urls<'a>(&'a self, project: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.repositories.iter().chain(&self.templates);
        all.filter(|repository| repository.declares_address)
            .filter(move |repository| repository.project.as_deref().is_none_or(|scope| scope == project))
            .map(|repository| repository.url.as_str())
    }

    /// The longest template that the address begins with. One that names only a host ends where the host
    /// ends: credentials for `https://host` are not for `https://host.evil.com`.
    fn template(&self, wanted: &str) -> Option<&Repository> {
        let prefix_length = |template: &&Repository| {
            let prefix = normalize_repo_url(&template.url);
            let rest = wanted.strip_prefix(prefix.as_str())?;
            let after_scheme = prefix.split_once("://").map_or(prefix.as_str(), |(_, after)| after);
            let whole_host = after_scheme.contains('/') || rest.is_empty() || rest.starts_with('/');
            (whole_host && !after_scheme.is_empty()).then_some(prefix.len())
        };
        let templates = self.templates.iter();
        templates
            .filter_map(|template| Some((prefix_length(&template)?, template)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, template)| template)
    }
}
