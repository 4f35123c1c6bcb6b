//! Registered clusters, from Secrets.

use std::collections::BTreeMap;

use plumb_core::project::TargetCluster;
use serde_json::Value;

use super::{SecretData, SecretText, value::csv};
use crate::wire::{Raw, Wire as _, wire};

/// A Secret of type `cluster`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSecret {
    /// Name, unique among clusters; the address if the Secret has none.
    pub name: String,
    /// Address of the API server, without trailing slash.
    pub server: String,
    /// Only these namespaces are managed; empty: all.
    pub namespaces: Vec<String>,
    /// With `namespaces`: also manage cluster-scoped kinds.
    pub cluster_resources: bool,
    /// The project it is registered for, if it is for one only.
    pub project: Option<String>,
    /// How to get in.
    pub auth: ClusterAuth,
    /// How to trust it.
    pub tls: ClusterTls,
    /// Proxy for all requests; may contain a password.
    pub proxy_url: Option<SecretText>,
    /// Do not request compressed responses.
    pub disable_compression: bool,
    /// Labels of the Secret, for generators.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret, for generators.
    pub annotations: BTreeMap<String, String>,
    /// Skip the reconciliation of all its apps.
    pub skip_reconcile: bool,
}

/// How to get into a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterAuth {
    /// User name for basic authentication.
    pub username: Option<String>,
    /// Password for basic authentication.
    pub password: Option<SecretText>,
    /// Bearer token.
    pub bearer_token: Option<SecretText>,
    /// A program that gives credentials.
    pub exec: Option<ExecConfig>,
    /// AWS settings as written; they need a program.
    pub aws: Option<Value>,
}

/// How to trust a cluster, and how it can trust us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterTls {
    /// Accept any certificate.
    pub insecure: bool,
    /// Name that the certificate must have.
    pub server_name: Option<String>,
    /// Authority (PEM, base64 as in a kubeconfig).
    pub ca_data: Option<String>,
    /// Client certificate (PEM, base64 as in a kubeconfig).
    pub cert_data: Option<String>,
    /// Client key (PEM, base64 as in a kubeconfig).
    pub key_data: Option<SecretText>,
}

wire! {
    /// A program that gives credentials.
    pub struct ExecConfig {
        /// The program.
        "command" command: String,
        /// Its arguments.
        "args" args: Vec<String>,
        /// Its environment.
        "env" env: BTreeMap<String, String>,
        /// Version of the answer.
        "apiVersion" api_version: String,
        /// The message if the program is missing.
        "installHint" install_hint: String,
        /// Tell the program about the cluster.
        "provideClusterInfo" provide_cluster_info: bool,
        /// Configuration that is passed to the program.
        "config" config: Raw,
    }

    /// The parts of `config` that are no secrets.
    struct RawClusterConfig {
        /// User name.
        "username" username: String,
        /// A program that gives credentials.
        "execProviderConfig" exec_provider_config: Option<ExecConfig>,
        /// AWS settings.
        "awsAuthConfig" aws_auth_config: Raw,
        /// How to trust the cluster.
        "tlsClientConfig" tls_client_config: RawTls,
        /// Do not request compressed responses.
        "disableCompression" disable_compression: bool,
    }

    /// The parts of `tlsClientConfig` that are no secrets.
    struct RawTls {
        /// Accept any certificate.
        "insecure" insecure: bool,
        /// Name that the certificate must have.
        "serverName" server_name: String,
        /// Authority.
        "caData" ca_data: String,
        /// Client certificate.
        "certData" cert_data: String,
    }
}

impl ClusterSecret {
    /// Reads a Secret of type `cluster`. The error names the key that is wrong.
    pub fn read(secret: &SecretData) -> Result<Self, String> {
        let server = secret.text("server").ok_or("server: missing")?.trim_end_matches('/').to_owned();
        let config: Value = match secret.get("config") {
            None => Value::Object(serde_json::Map::new()),
            // The position is enough: the text around it may be a password.
            Some(text) => serde_json::from_str(text.expose()).map_err(|error| {
                format!("config: not JSON at line {} column {}", error.line(), error.column())
            })?,
        };
        let raw = RawClusterConfig::read(&config).map_err(|error| format!("config: {error}"))?;
        let hidden = |pointer: &str| {
            let text = config.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(SecretText::new)
        };
        let non_empty = |text: String| (!text.is_empty()).then_some(text);
        let annotations = &secret.metadata.annotations;
        Ok(Self {
            name: secret.text("name").unwrap_or_else(|| server.clone()),
            server,
            namespaces: csv(&secret.text("namespaces").unwrap_or_default()),
            cluster_resources: secret.text("clusterResources").as_deref() == Some("true"),
            project: secret.text("project"),
            auth: ClusterAuth {
                username: non_empty(raw.username),
                password: hidden("/password"),
                bearer_token: hidden("/bearerToken"),
                exec: raw.exec_provider_config,
                aws: Some(raw.aws_auth_config.0).filter(|value| !value.is_null()),
            },
            tls: ClusterTls {
                insecure: raw.tls_client_config.insecure,
                server_name: non_empty(raw.tls_client_config.server_name),
                ca_data: non_empty(raw.tls_client_config.ca_data),
                cert_data: non_empty(raw.tls_client_config.cert_data),
                key_data: hidden("/tlsClientConfig/keyData"),
            },
            proxy_url: hidden("/proxyUrl"),
            disable_compression: raw.disable_compression,
            labels: secret.metadata.labels.clone(),
            annotations: annotations.clone(),
            skip_reconcile: annotations
                .get("argocd.argoproj.io/skip-reconcile")
                .is_some_and(|text| crate::convert::is_true(text)),
        })
    }

    /// The cluster as projects see it.
    pub fn target(&self) -> TargetCluster<'_> {
        TargetCluster { server: &self.server, name: &self.name, project: self.project.as_deref() }
    }
}
