//! Credentials. The git program gets them through its environment and private files, never through arguments.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use plumb_core::source::AddressPolicy;
use sha2::{Digest as _, Sha256};

use crate::secret::{Secret, hex};
use crate::url::{RepoUrl, Transport};

/// How to reach one repository: the content of a `repository` or `repo-creds` Secret, and of the settings'
/// known hosts and certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoAccess {
    /// User name for http(s).
    pub username: Option<String>,
    /// Password or token for http(s).
    pub password: Option<Secret>,
    /// Token sent as `Authorization: Bearer`; wins over the password.
    pub bearer_token: Option<Secret>,
    /// Send basic credentials with the first request instead of after a 401.
    pub force_basic_auth: bool,
    /// Options for ssh.
    pub ssh: SshAccess,
    /// Options for https.
    pub tls: TlsAccess,
    /// Proxy for http(s).
    pub proxy: Option<Secret>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// Fetch submodules too.
    pub submodules: bool,
    /// Which servers may be connected to.
    pub policy: Arc<AddressPolicy>,
}

/// ssh part of [`RepoAccess`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshAccess {
    /// Private key in PEM or OpenSSH form.
    pub private_key: Option<Secret>,
    /// Lines of a `known_hosts` file. A host that is not in it is refused.
    pub known_hosts: String,
    /// Accept any host key.
    pub ignore_host_key: bool,
}

/// TLS part of [`RepoAccess`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsAccess {
    /// Accept any certificate.
    pub insecure: bool,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca: Option<String>,
    /// Client certificate (PEM).
    pub client_certificate: Option<String>,
    /// Key of the client certificate (PEM).
    pub client_key: Option<Secret>,
}

impl RepoAccess {
    /// A hash that distinguishes sets of credentials. A mirror can be read only with credentials that have
    /// fetched it.
    pub fn identity(&self) -> String {
        let mut hasher = Sha256::new();
        let mut part = |text: Option<&str>| {
            let text = text.unwrap_or("\0absent");
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        part(self.username.as_deref());
        part(self.password.as_ref().map(Secret::expose));
        part(self.bearer_token.as_ref().map(Secret::expose));
        part(self.ssh.private_key.as_ref().map(Secret::expose));
        part(self.tls.client_certificate.as_deref());
        part(self.tls.client_key.as_ref().map(Secret::expose));
        hex(&hasher.finalize())
    }

    /// All texts that must not be in a message.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        [&self.password, &self.bearer_token, &self.ssh.private_key, &self.tls.client_key, &self.proxy]
            .into_iter()
            .flatten()
            .map(Secret::expose)
            .filter(|text| !text.is_empty())
    }

    /// The environment with which git uses these credentials for this address. Private files are written
    /// below `scratch`, which the caller removes when the command has ended.
    pub(crate) fn environment(&self, url: &RepoUrl, scratch: &Path) -> std::io::Result<Environment> {
        let mut environment = Environment::default();
        match url.transport() {
            Transport::Https | Transport::Http => self.http(url, scratch, &mut environment)?,
            Transport::Ssh => self.ssh_command(scratch, &mut environment)?,
            Transport::Git | Transport::File => {}
        }
        Ok(environment)
    }

    fn http(&self, url: &RepoUrl, scratch: &Path, environment: &mut Environment) -> std::io::Result<()> {
        let username = self.username.as_deref().or(url.username()).filter(|name| !name.is_empty());
        let password = self.password.as_ref().or(url.password()).filter(|secret| !secret.expose().is_empty());
        if let Some(token) = &self.bearer_token {
            environment.header(&format!("Authorization: Bearer {}", token.expose()));
        } else if self.force_basic_auth
            && let Some(password) = password
        {
            let pair = format!("{}:{}", username.unwrap_or_default(), password.expose());
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            environment.header(&format!("Authorization: Basic {encoded}"));
        } else if username.is_some() || password.is_some() {
            // The credential helper answers for this host only. After a redirect git requests the credentials
            // of the other host, and gets none.
            let scope = format!("credential.{}://{}.helper", url.transport().scheme(), url.host());
            environment.config(
                &scope,
                "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \
                 \"$PLUMB_GIT_USERNAME\" \"$PLUMB_GIT_PASSWORD\"; }; f",
            );
            // With a token, GitHub, GitLab and others accept any user name, but it must not be empty.
            environment.set("PLUMB_GIT_USERNAME", username.unwrap_or("x-access-token"));
            environment.set("PLUMB_GIT_PASSWORD", password.map(Secret::expose).unwrap_or_default());
        }
        if self.tls.insecure {
            environment.config("http.sslVerify", "false");
        }
        if let Some(ca) = &self.tls.ca {
            environment.config_path("http.sslCAInfo", &private_file(scratch, "ca.pem", ca)?);
        }
        if let (Some(certificate), Some(key)) = (&self.tls.client_certificate, &self.tls.client_key) {
            environment.config_path("http.sslCert", &private_file(scratch, "client.pem", certificate)?);
            environment.config_path("http.sslKey", &private_file(scratch, "client.key", key.expose())?);
        }
        if let Some(proxy) = &self.proxy {
            environment.config("http.proxy", proxy.expose());
        }
        if let Some(no_proxy) = &self.no_proxy {
            environment.set("no_proxy", no_proxy);
        }
        Ok(())
    }

    fn ssh_command(&self, scratch: &Path, environment: &mut Environment) -> std::io::Result<()> {
        let mut command = String::from(
            "ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=15 -o ServerAliveInterval=15",
        );
        if self.ssh.ignore_host_key {
            command.push_str(" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null");
        } else {
            let known_hosts = private_file(scratch, "known_hosts", &self.ssh.known_hosts)?;
            command.push_str(
                " -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile=",
            );
            command.push_str(&quoted(&known_hosts));
        }
        // The ssh keys and the agent of the account that plumb runs as must not be used.
        command.push_str(" -o IdentityAgent=none");
        match &self.ssh.private_key {
            Some(key) => {
                // ssh refuses a key file without its final line break.
                let text = format!("{}\n", key.expose().trim_end());
                command.push_str(" -i ");
                command.push_str(&quoted(&private_file(scratch, "key", &text)?));
            }
            None => command.push_str(" -o IdentityFile=none"),
        }
        environment.set("GIT_SSH_COMMAND", &command);
        environment.set("GIT_SSH_VARIANT", "ssh");
        Ok(())
    }
}

/// Variables for one run of git.
#[derive(Default)]
pub(crate) struct Environment {
    variables: Vec<(OsString, OsString)>,
    config: Vec<(String, OsString)>,
}

impl Environment {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    /// Adds to the end of a variable that is set.
    pub(crate) fn append(&mut self, name: &str, text: &str) {
        if let Some((_, value)) = self.variables.iter_mut().find(|(variable, _)| variable == name) {
            value.push(text);
        }
    }

    /// One entry of git's configuration, which overrides every file.
    pub(crate) fn config(&mut self, key: &str, value: &str) {
        self.config.push((key.to_owned(), value.into()));
    }

    fn config_path(&mut self, key: &str, path: &Path) {
        self.config.push((key.to_owned(), path.into()));
    }

    /// git sends an extra header to redirect targets too, so redirects are off with it.
    fn header(&mut self, header: &str) {
        self.config("http.extraHeader", header);
        self.config("http.followRedirects", "false");
    }

    /// The variables, with the configuration in the form that git reads from its environment.
    pub(crate) fn into_variables(self) -> Vec<(OsString, OsString)> {
        let mut variables = self.variables;
        variables.push(("GIT_CONFIG_COUNT".into(), self.config.len().to_string().into()));
        for (index, (key, value)) in self.config.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{index}").into(), key.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{index}").into(), value));
        }
        variables
    }
}

fn private_file(directory: &Path, name: &str, content: &str) -> std::io::Result<PathBuf> {
    let path = directory.join(name);
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(content.as_bytes())?;
    Ok(path)
}

/// For `GIT_SSH_COMMAND`, which a shell reads.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
