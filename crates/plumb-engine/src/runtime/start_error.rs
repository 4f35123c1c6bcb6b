//! Why the engine cannot start or go on.

/// Why the engine cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The cluster cannot be reached as configured.
    #[error("cannot connect to the cluster")]
    Connect(#[from] plumb_kube::ConnectError),
    /// The API server does not say which kinds it serves.
    #[error("cannot ask the API server which kinds it serves")]
    Discover(#[from] plumb_kube::ApiError),
    /// Another application controller works on the same Applications.
    #[error("another application controller is running in namespace {namespace}: {found}")]
    Beside {
        /// The namespace.
        namespace: String,
        /// The controller's pods and leases.
        found: String,
    },
    /// The API server does not serve kinds that the engine needs.
    #[error(
        "cannot watch Applications and projects: the API server does not serve the definitions {missing}"
    )]
    Kinds {
        /// The names of their definitions.
        missing: String,
    },
    /// A task that the engine needs has ended.
    #[error("cannot watch Applications, projects and settings: a task of the engine ended")]
    Watch,
    /// The system does not start a thread.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// The cache directory cannot be used.
    #[error("cannot use the cache directory {directory}")]
    Cache {
        /// The directory.
        directory: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}
