//! What differs between installations.

use serde_json::{Value, json};

use super::image::ImageReference;

/// What differs between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one choice of an installation")]
pub struct InstallOptions {
    /// Namespace of the control plane.
    pub namespace: String,
    /// Image with the `plumb` program.
    pub image: ImageReference,
    /// When a node pulls the image.
    pub pull_policy: PullPolicy,
    /// Number of replicas; one is the leader, the others are on standby.
    pub replicas: u32,
    /// Include the project `default`.
    pub project: bool,
    /// What plumb's own service account may do.
    pub profile: Profile,
    /// With [`Profile::Strict`]: the namespaces whose service accounts plumb may impersonate.
    pub impersonate_in: Vec<String>,
    /// Namespaces whose pods reach the port of webhooks; empty: all pods of the cluster.
    pub web_from: Vec<String>,
    /// Namespaces whose pods reach the port of metrics.
    pub metrics_from: Vec<String>,
    /// Include the `NetworkPolicy`.
    pub network_policy: bool,
    /// Include the definitions of plumb's own kinds.
    pub crds: bool,
    /// Include the definitions of Argo CD's kinds, too. Beside an Argo CD they are there already.
    pub argocd_crds: bool,
    /// `resources` of the container.
    pub resources: Value,
    /// What the cluster asks of pods.
    pub pods: PodOptions,
    /// More arguments of `plumb run`.
    pub extra_args: Vec<String>,
    /// More variables of the container, as a Deployment has them.
    pub extra_env: Vec<Value>,
    /// Include a `ServiceMonitor` of the Prometheus operator.
    pub service_monitor: Option<ServiceMonitor>,
    /// Include a `PrometheusRule` with these labels besides plumb's own.
    pub prometheus_rule: Option<Value>,
    /// Include an Ingress.
    pub ingress: Option<Ingress>,
    /// Include an `HTTPRoute` of the Gateway API.
    pub gateway: Option<Gateway>,
    /// Settings, in the shape of `configs` of Argo CD's chart: `cm`, `params`, `rbac`, `ssh`, `tls`, `gpg`,
    /// `repositories`, `credentialTemplates`, `clusterCredentials` and `secret`.
    pub configs: Value,
}

/// What a cluster asks of pods: where they run, how they get their image, and what others read about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodOptions {
    /// `imagePullSecrets`: for a registry that asks for a login.
    pub image_pull_secrets: Value,
    /// `nodeSelector`.
    pub node_selector: Value,
    /// `tolerations`.
    pub tolerations: Value,
    /// `affinity`.
    pub affinity: Value,
    /// `priorityClassName`; empty: the cluster's default.
    pub priority_class: String,
    /// Annotations of the pods.
    pub annotations: Value,
    /// Labels of the pods besides plumb's own.
    pub labels: Value,
    /// Annotations of the service account.
    pub account_annotations: Value,
}

/// What a `ServiceMonitor` says besides plumb's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceMonitor {
    /// How often metrics are read.
    pub interval: String,
    /// Labels besides plumb's own: many Prometheus read only monitors with theirs.
    pub labels: Value,
}

/// How an Ingress leads to plumb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// The name that clients use.
    pub host: String,
    /// The class; empty: the cluster's default.
    pub class_name: String,
    /// `metadata.annotations`.
    pub annotations: Value,
    /// `spec.tls`.
    pub tls: Value,
}

/// How a Gateway leads to plumb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The name that clients use.
    pub host: String,
    /// The Gateway.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl Default for InstallOptions {
    fn default() -> Self {
        Self {
            namespace: "argocd".to_owned(),
            image: ImageReference::unpublished(),
            pull_policy: PullPolicy::IfNotPresent,
            replicas: 2,
            project: true,
            profile: Profile::Standard,
            impersonate_in: Vec::new(),
            web_from: Vec::new(),
            metrics_from: vec!["monitoring".to_owned()],
            network_policy: true,
            crds: true,
            argocd_crds: true,
            resources: json!({"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}),
            pods: PodOptions::default(),
            extra_args: Vec::new(),
            extra_env: Vec::new(),
            service_monitor: None,
            prometheus_rule: None,
            ingress: None,
            gateway: None,
            configs: json!({}),
        }
    }
}

/// What plumb's own service account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Everything: plumb applies any object that Git contains.
    Standard,
    /// Read everything and write only plumb's own objects. Everything else is written as the service account that the
    /// project names.
    Strict,
}

/// When a node pulls the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Before each start.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// Never: the image is loaded onto the nodes.
    Never,
}

impl PullPolicy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}
