//! Why a connection to a cluster cannot be set up.

/// Why no way to the cluster could be set up. None of these is about the network: nothing was sent yet.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("read kubeconfig {path}")]
    Kubeconfig {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// No service account is mounted: this is no pod.
    #[error("find the service account of this pod")]
    InCluster {
        /// Why.
        #[source]
        source: Box<kube::config::InClusterError>,
    },
    /// The cluster Secret's `server` is no URL.
    #[error("the cluster's address `{server}` is not a URL")]
    Server {
        /// The text.
        server: String,
        /// Why.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The cluster Secret's `config` is not the JSON that it should be.
    #[error("the `config` of cluster {server} is not the JSON that a cluster Secret holds")]
    ClusterSecret {
        /// The cluster's address.
        server: String,
        /// Why. The values are not part of the message.
        #[source]
        source: serde_json::Error,
    },
    /// The cluster Secret asks for something that is switched off or not supported.
    #[error("cluster {server} asks for `{what}`, which is {why}")]
    NotAllowed {
        /// The cluster's address.
        server: String,
        /// The field of the cluster Secret.
        what: &'static str,
        /// Why it is not done.
        why: &'static str,
    },
    /// Certificates or keys cannot be used.
    #[error("set up TLS to the cluster")]
    Tls {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The name to check the server's certificate against is no name.
    #[error("`{name}` is no name that a server certificate can have")]
    ServerName {
        /// The text.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Token, password or plugin cannot be used.
    #[error("set up the credentials for the cluster")]
    Credentials {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}
