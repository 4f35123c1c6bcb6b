//! Why a connection to a cluster cannot be set up.

/// Why a connection to a cluster cannot be set up. No variant is about the network: nothing was sent yet.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("cannot read kubeconfig {path}")]
    Kubeconfig {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// No service account is mounted: this process does not run in a pod.
    #[error("cannot find the service account of this pod")]
    InCluster {
        /// Why.
        #[source]
        source: Box<kube::config::InClusterError>,
    },
    /// The cluster Secret's `server` is not a URL.
    #[error("the cluster address `{server}` is not a URL")]
    Server {
        /// The text.
        server: String,
        /// Why.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The cluster Secret's `config` is not valid JSON, or not that of a cluster Secret.
    #[error("cannot read the `config` of cluster {server} as the JSON of a cluster Secret")]
    ClusterSecret {
        /// The cluster's address.
        server: String,
        /// Why. The values are not part of the message.
        #[source]
        source: serde_json::Error,
    },
    /// The cluster Secret uses a field that is switched off or not supported.
    #[error("cluster {server} uses `{what}`, which is {why}")]
    NotAllowed {
        /// The cluster's address.
        server: String,
        /// The field of the cluster Secret.
        what: &'static str,
        /// Why it is not allowed.
        why: &'static str,
    },
    /// Certificates or keys cannot be used.
    #[error("cannot set up TLS to the cluster")]
    Tls {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The name to check the server's certificate against is not a valid server name.
    #[error("`{name}` is not a valid server name for TLS")]
    ServerName {
        /// The text.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Token, password or plugin cannot be used.
    #[error("cannot set up the credentials for the cluster")]
    Credentials {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}
