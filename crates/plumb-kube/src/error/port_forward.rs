//! No connection to a pod.

/// Why there is no connection to a port of a pod.
#[derive(Debug, thiserror::Error)]
pub enum PortForwardError {
    /// The credentials of the cluster cannot be used.
    #[error("cannot set up a connection to pods of the cluster")]
    Client {
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server refuses the connection.
    #[error("cannot connect to port {port} of pod {pod}")]
    Refused {
        /// The pod.
        pod: String,
        /// Its port.
        port: u16,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server opened a connection that does not have the port.
    #[error("cannot connect to port {port} of pod {pod}: the connection has no such port")]
    NoStream {
        /// The pod.
        pod: String,
        /// Its port.
        port: u16,
    },
}
