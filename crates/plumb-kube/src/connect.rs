//! The address of a cluster and the credentials for it: from a kubeconfig, from inside a pod, or from Argo
//! CD's cluster Secret.

use std::fmt;
use std::path::Path;

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::json;

use crate::client::ClusterClient;
use crate::error::ConnectError;
use crate::transport::{Protocol, Transport};

/// May a cluster Secret start a program to get credentials?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecPlugins {
    /// No: otherwise a user who can write a cluster Secret could run programs in the engine.
    #[default]
    Off,
    /// Yes, the operator switched it on.
    On,
}

/// A cluster as Argo CD registers it: the parts of a Secret with the label
/// `argocd.argoproj.io/secret-type: cluster`.
#[derive(Clone)]
pub struct RegisteredCluster {
    /// `server`.
    pub server: String,
    /// `config`, JSON text. It holds credentials.
    pub config: Vec<u8>,
}

impl fmt::Debug for RegisteredCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredCluster").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The configuration of a connection to a cluster. It holds credentials and cannot be printed.
pub struct Connection {
    config: kube::Config,
    protocol: Protocol,
}

impl Connection {
    /// From a kubeconfig file; `context` is its current context unless named.
    pub async fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self, ConnectError> {
        let fail =
            |source| ConnectError::Kubeconfig { path: path.display().to_string(), source: Box::new(source) };
        let options = KubeConfigOptions { context: context.map(str::to_owned), cluster: None, user: None };
        let file = Kubeconfig::read_from(path).map_err(fail)?;
        let config = kube::Config::from_custom_kubeconfig(file, &options).await.map_err(fail)?;
        Ok(Self { config, protocol: Protocol::default() })
    }

    /// From the service account that is mounted into this pod.
    pub fn in_cluster() -> Result<Self, ConnectError> {
        let config = kube::Config::incluster()
            .map_err(|source| ConnectError::InCluster { source: Box::new(source) })?;
        Ok(Self { config, protocol: Protocol::default() })
    }

    /// From one of Argo CD's cluster Secrets.
    pub fn from_registered(cluster: &RegisteredCluster, exec: ExecPlugins) -> Result<Self, ConnectError> {
        let config = registered_config(cluster, exec)?;
        Ok(Self { config, protocol: Protocol::default() })
    }

    /// The same connection with other HTTP versions.
    #[must_use]
    pub fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    pub(crate) fn kube_config(&self) -> &kube::Config {
        &self.config
    }

    /// The API server's address.
    pub fn server(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// True if the address of the API server is a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.config.cluster_url.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The namespace of the kubeconfig's context or of the pod.
    pub fn default_namespace(&self) -> &str {
        &self.config.default_namespace
    }

    /// Sets up a client. Nothing is sent yet.
    pub fn client(&self) -> Result<ClusterClient, ConnectError> {
        let transport = Transport::new(&self.config, self.protocol)?;
        Ok(ClusterClient::over(transport, self.server()))
    }
}

/// The `config` of a cluster Secret, with Argo CD's field names.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecretConfig {
    username: Option<String>,
    password: Option<String>,
    bearer_token: Option<String>,
    tls_client_config: SecretTls,
    aws_auth_config: Option<serde_json::Value>,
    exec_provider_config: Option<ExecProvider>,
    disable_compression: bool,
    proxy_url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecretTls {
    insecure: bool,
    server_name: Option<String>,
    ca_data: Option<String>,
    cert_data: Option<String>,
    key_data: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecProvider {
    command: String,
    args: Option<Vec<String>>,
    env: Option<std::collections::BTreeMap<String, String>>,
    api_version: Option<String>,
    install_hint: Option<String>,
}

fn registered_config(cluster: &RegisteredCluster, exec: ExecPlugins) -> Result<kube::Config, ConnectError> {
    let server = cluster.server.trim_end_matches('/').to_owned();
    let secret: SecretConfig = if cluster.config.trim_ascii().is_empty() {
        SecretConfig::default()
    } else {
        serde_json::from_slice(&cluster.config)
            .map_err(|source| ConnectError::ClusterSecret { server: server.clone(), source })?
    };
    let not_allowed = |what, why| ConnectError::NotAllowed { server: server.clone(), what, why };
    if secret.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
        return Err(not_allowed("proxyUrl", "not supported"));
    }
    if secret.aws_auth_config.is_some() {
        return Err(not_allowed("awsAuthConfig", "not supported; use a token or execProviderConfig"));
    }
    if secret.exec_provider_config.is_some() && exec == ExecPlugins::Off {
        return Err(not_allowed(
            "execProviderConfig",
            "switched off: it starts programs; `plumb run --cluster-exec-plugins` allows it",
        ));
    }

    let url = server
        .parse::<http::Uri>()
        .map_err(|source| ConnectError::Server { server: server.clone(), source })?;
    let mut config = kube::Config::new(url);
    config.disable_compression = secret.disable_compression;
    config.accept_invalid_certs = secret.tls_client_config.insecure;
    config.tls_server_name = secret.tls_client_config.server_name.clone().filter(|name| !name.is_empty());
    config.auth_info = auth_info(&server, &secret)?;
    if let Some(ca) = secret.tls_client_config.ca_data.filter(|ca| !ca.is_empty()) {
        config.root_cert = Some(certificates(&server, &ca)?);
    }
    Ok(config)
}

/// Goes through the JSON form of a kubeconfig, because its secret fields have no other constructor.
fn auth_info(server: &str, secret: &SecretConfig) -> Result<AuthInfo, ConnectError> {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let exec = secret.exec_provider_config.as_ref().map(|provider| {
        json!({
            "apiVersion": provider.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1beta1"),
            "command": provider.command,
            "args": provider.args,
            "env": provider.env.iter().flatten()
                .map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>(),
            "installHint": provider.install_hint,
            "interactiveMode": "Never",
        })
    });
    let wire = json!({
        "username": filled(&secret.username),
        "password": filled(&secret.password),
        "token": filled(&secret.bearer_token),
        "client-certificate-data": filled(&secret.tls_client_config.cert_data),
        "client-key-data": filled(&secret.tls_client_config.key_data),
        "exec": exec,
    });
    serde_json::from_value(wire)
        .map_err(|source| ConnectError::ClusterSecret { server: server.to_owned(), source })
}

/// DER certificates out of the base64 of a PEM bundle, by way of a kubeconfig's `certificate-authority-data`.
fn certificates(server: &str, ca_data: &str) -> Result<Vec<Vec<u8>>, ConnectError> {
    use base64::Engine as _;
    let bad =
        |why| ConnectError::NotAllowed { server: server.to_owned(), what: "tlsClientConfig.caData", why };
    let pem =
        base64::engine::general_purpose::STANDARD.decode(ca_data.trim()).map_err(|_| bad("not base64"))?;
    let text = String::from_utf8(pem).map_err(|_| bad("not PEM"))?;
    let mut found = Vec::new();
    for block in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (body, _) = block.split_once("-----END CERTIFICATE-----").ok_or_else(|| bad("not PEM"))?;
        let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let der = base64::engine::general_purpose::STANDARD.decode(body).map_err(|_| bad("not PEM"))?;
        found.push(der);
    }
    if found.is_empty() { Err(bad("without a certificate")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(config: &str) -> Result<kube::Config, ConnectError> {
        let cluster = RegisteredCluster {
            server: "https://10.0.0.1:6443/".to_owned(),
            config: config.as_bytes().to_vec(),
        };
        registered_config(&cluster, ExecPlugins::Off)
    }

    #[test]
    fn a_token_and_tls_options_are_taken_over() {
        let config = registered(
            r#"{"bearerToken":"t0k3n","tlsClientConfig":{"insecure":true,"serverName":"api.example"},"unknown":1}"#,
        )
        .unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://10.0.0.1:6443/");
        assert!(config.auth_info.token.is_some());
        assert!(config.accept_invalid_certs);
        assert_eq!(config.tls_server_name.as_deref(), Some("api.example"));
    }

    #[test]
    fn an_exec_plugin_is_refused_unless_switched_on() {
        let config = r#"{"execProviderConfig":{"command":"/bin/sh","args":["-c","id"]}}"#;
        assert!(matches!(
            registered(config),
            Err(ConnectError::NotAllowed { what: "execProviderConfig", .. })
        ));
    }

    #[test]
    fn nonsense_is_an_error_that_prints_no_value() {
        let error = registered(r#"{"bearerToken":["s3cr3t"]}"#).unwrap_err();
        assert!(matches!(error, ConnectError::ClusterSecret { .. }));
        assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        assert!(registered(r#"{"tlsClientConfig":{"caData":"%%%"}}"#).is_err());
        assert!(registered(r#"{"tlsClientConfig":{"caData":"aGVsbG8="}}"#).is_err());
        assert!(registered("").is_ok());
    }
}
