//! What differs between installations.

use super::image::ImageReference;

/// What differs between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
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
