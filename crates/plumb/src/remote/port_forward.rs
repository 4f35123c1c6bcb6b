//! `--port-forward`: the server is reached through the API server of its cluster.

use std::net::{Ipv4Addr, SocketAddr};

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{Connection, PodPort, Selection};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::error::CommandError;
use crate::kinds;

/// The pods of the server, as installations of plumb and of Argo CD label them.
const PODS: &str = "app.kubernetes.io/name in (argocd-server,plumb)";
/// The port of the server in its pod.
const PORT: u16 = 8080;

/// What argocd's flags say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortForward {
    /// The namespace of the server; that of the control plane if there is none.
    pub(crate) namespace: Option<String>,
    /// The name with which its pods are labelled.
    pub(crate) server_name: Option<String>,
}

/// Opens a port of this machine that leads to the server for as long as the process runs.
pub(crate) async fn open(
    connection: &Connection,
    namespace: &str,
    server_name: Option<&str>,
) -> Result<SocketAddr, CommandError> {
    let labels = server_name.map_or(PODS.to_owned(), |name| format!("app.kubernetes.io/name={name}"));
    let client =
        connection.client().map_err(|error| CommandError::because("connect to the cluster", error))?;
    client.assume_kinds(&kinds::known());
    let selection =
        Selection { namespace: Some(namespace.to_owned()), labels: Some(labels.clone()), fields: None };
    let gvk = GroupVersionKind::from_api_version("v1", "Pod");
    let pods = client.list(&gvk, &selection).await;
    let pods =
        pods.map_err(|error| CommandError::api(format!("list the pods of namespace {namespace}"), error))?;
    let pod = pods.iter().find(|pod| is_ready(pod)).and_then(Manifest::name).ok_or_else(|| {
        CommandError::new(format!("no pod of the server is ready in namespace {namespace} ({labels})"))
            .hint("--port-forward-namespace and --server-name say where it runs and what its pods are called")
    })?;
    let port = connection.pod_port(namespace, pod, PORT);
    let port = port.map_err(|error| CommandError::because("forward a port", error))?;
    // The first connection shows what is wrong, as an error of this command.
    let first = port.open().await.map_err(|error| CommandError::because("forward a port", error))?;
    drop(first);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(|error| CommandError::because("open a local port", error))?;
    let address = listener.local_addr().map_err(|error| CommandError::because("open a local port", error))?;
    tokio::spawn(pass_on(listener, port));
    Ok(address)
}

/// Gives each connection one of its own to the pod. A connection that the pod does not take ends, which its client says.
async fn pass_on(listener: TcpListener, port: PodPort) {
    while let Ok((mut here, _)) = listener.accept().await {
        let port = port.clone();
        tokio::spawn(async move {
            if let Ok(mut there) = port.open().await {
                let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
            }
        });
    }
}

fn is_ready(pod: &Manifest) -> bool {
    let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && pod.value().pointer("/metadata/deletionTimestamp").is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_ready_pod_that_stays_is_the_server() {
        let check = |metadata: Value, status: &str, expected: bool| {
            let conditions =
                json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": status}]);
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "status": {"conditions": conditions}});
            assert_eq!(is_ready(&Manifest::new(pod).unwrap()), expected, "{metadata} {status}");
        };
        check(json!({"name": "a"}), "True", true);
        check(json!({"name": "a"}), "False", false);
        check(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}), "True", false);
    }
}
