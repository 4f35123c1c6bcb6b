//! Connections to a port of a pod, through the API server: users who can reach no pod can reach these.

use k8s_openapi::api::core::v1::Pod;
use tokio::io::DuplexStream;

use crate::connect::Connection;
use crate::error::PortForwardError;

/// A port of a pod. Cheap to clone.
#[derive(Clone)]
pub struct PodPort {
    pods: kube::Api<Pod>,
    pod: String,
    port: u16,
}

impl Connection {
    /// A port of a pod. Nothing is sent yet.
    pub fn pod_port(&self, namespace: &str, pod: &str, port: u16) -> Result<PodPort, PortForwardError> {
        let client = kube::Client::try_from(self.kube_config().clone())
            .map_err(|source| PortForwardError::Client { source: Box::new(source) })?;
        Ok(PodPort { pods: kube::Api::namespaced(client, namespace), pod: pod.to_owned(), port })
    }
}

impl PodPort {
    /// Opens a connection. It ends when it is dropped.
    pub async fn open(&self) -> Result<DuplexStream, PortForwardError> {
        let (pod, port) = (self.pod.clone(), self.port);
        let mut forwarder = match self.pods.portforward(&pod, &[port]).await {
            Ok(forwarder) => forwarder,
            Err(source) => return Err(PortForwardError::Refused { pod, port, source: Box::new(source) }),
        };
        forwarder.take_stream(port).ok_or(PortForwardError::NoStream { pod, port })
    }
}
