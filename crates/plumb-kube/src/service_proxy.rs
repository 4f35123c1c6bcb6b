//! Requests to pods and to the pods of a Service, through the API server: users who can reach no pod can reach these.

use bytes::Bytes;
use http::Method;
use plumb_core::object::{GroupVersionKind, Manifest};
use serde_json::Value;

use crate::catalog::Resource;
use crate::client::{Call, ClusterClient};
use crate::error::ApiError;

/// The first port of a Service, as the API server's proxy wants it named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    namespace: String,
    name: String,
    port: String,
}

impl ClusterClient {
    /// The first port of a Service; `None` if there is no such Service, or if it has no port.
    pub async fn service_port(&self, namespace: &str, name: &str) -> Result<Option<ServicePort>, ApiError> {
        let service = self.get_as(&services(), Some(namespace), name).await?;
        let port = service.as_ref().and_then(first_port);
        Ok(port.map(|port| ServicePort { namespace: namespace.to_owned(), name: name.to_owned(), port }))
    }

    /// Reads a path that a Service serves over HTTP. `path` has no leading slash.
    pub async fn read_from_service(&self, port: &ServicePort, path: &str) -> Result<Bytes, ApiError> {
        let call = Call::new(Method::GET, port.path(path)?).accepting("*/*");
        Ok(self.call(call).await?.body)
    }

    /// Reads a path that a pod serves over HTTP. `path` has no leading slash.
    pub async fn read_from_pod(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        path: &str,
    ) -> Result<Bytes, ApiError> {
        let call = Call::new(Method::GET, pod_path(namespace, pod, port, path)?).accepting("*/*");
        Ok(self.call(call).await?.body)
    }

    /// Sends JSON to a Service that answers a question with it. Nothing in the cluster changes.
    pub async fn ask_service(&self, port: &ServicePort, path: &str, body: &Value) -> Result<Bytes, ApiError> {
        let call = Call::new(Method::POST, port.path(path)?).accepting("*/*");
        Ok(self.call(call.body("application/json", body.to_string())).await?.body)
    }
}

impl ServicePort {
    fn path(&self, path: &str) -> Result<String, ApiError> {
        let id = format!("http:{}:{}", self.name, self.port);
        let proxy = services().object_path(Some(&self.namespace), &id, Some("proxy"))?;
        Ok(format!("{proxy}/{path}"))
    }
}

fn pod_path(namespace: &str, pod: &str, port: u16, path: &str) -> Result<String, ApiError> {
    let pods = Resource {
        gvk: GroupVersionKind::from_api_version("v1", "Pod"),
        plural: "pods".to_owned(),
        namespaced: true,
    };
    let proxy = pods.object_path(Some(namespace), &format!("{pod}:{port}"), Some("proxy"))?;
    Ok(format!("{proxy}/{path}"))
}

/// The name of the first port; a port without a name has a number.
fn first_port(service: &Manifest) -> Option<String> {
    let port = service.value().pointer("/spec/ports/0")?;
    let name = port.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    name.map(str::to_owned).or_else(|| port.get("port").and_then(Value::as_u64).map(|port| port.to_string()))
}

fn services() -> Resource {
    Resource {
        gvk: GroupVersionKind::from_api_version("v1", "Service"),
        plural: "services".to_owned(),
        namespaced: true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_is_named_or_numbered() {
        for (ports, expected) in [
            (json!([{"name": "http", "port": 8080}, {"name": "metrics", "port": 8081}]), Some("http")),
            (json!([{"port": 8080}]), Some("8080")),
            (json!([{"name": "", "port": 80}]), Some("80")),
            (json!([]), None),
            (json!("x"), None),
        ] {
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
                "spec": {"ports": ports}});
            let service = Manifest::new(service).unwrap();
            assert_eq!(first_port(&service).as_deref(), expected);
        }
    }

    #[test]
    fn a_name_cannot_lead_to_another_path() {
        let port = |name: &str| ServicePort {
            namespace: "kube-system".to_owned(),
            name: name.to_owned(),
            port: "http".to_owned(),
        };
        let path = "/api/v1/namespaces/kube-system/services/http:sealed:http/proxy/v1/cert.pem";
        assert_eq!(port("sealed").path("v1/cert.pem").unwrap(), path);
        let path = "/api/v1/namespaces/argocd/pods/..%2Fa:8082/proxy/readyz";
        assert_eq!(pod_path("argocd", "../a", 8082, "readyz").unwrap(), path);
        let path = "/api/v1/namespaces/kube-system/services/http:..%2F..:http/proxy/v1/cert.pem";
        assert_eq!(port("../..").path("v1/cert.pem").unwrap(), path);
    }
}
