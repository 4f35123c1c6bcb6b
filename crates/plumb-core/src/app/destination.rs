//! Where the objects of an app are applied.

/// The cluster and namespace that the objects go to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// By address or by registered name.
    pub cluster: ClusterRef,
    /// Namespace of namespaced objects that name none.
    pub namespace: Option<String>,
}

/// How a destination names its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterRef {
    /// The API server's URL, without trailing slash.
    Server(String),
    /// The name under which the cluster is registered.
    Name(String),
}

impl ClusterRef {
    /// The address of the cluster in which plumb runs.
    pub const IN_CLUSTER_SERVER: &'static str = "https://kubernetes.default.svc";
    /// The name of the cluster in which plumb runs.
    pub const IN_CLUSTER_NAME: &'static str = "in-cluster";

    /// Is it the cluster in which plumb runs?
    pub fn is_in_cluster(&self) -> bool {
        match self {
            Self::Server(server) => server == Self::IN_CLUSTER_SERVER,
            Self::Name(name) => name == Self::IN_CLUSTER_NAME,
        }
    }
}
