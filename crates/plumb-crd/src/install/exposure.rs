//! How clients outside of the cluster reach the API and the page.

use serde_json::{Value, json};

use super::objects::{NAME, WEB_PORT, labels};
use super::options::{Gateway, Ingress, InstallOptions};

pub(super) fn exposure(options: &InstallOptions) -> Vec<Value> {
    let ingress = options.ingress.iter().map(|ingress| ingress_object(options, ingress));
    let route = options.gateway.iter().map(|gateway| http_route(options, gateway));
    ingress.chain(route).collect()
}

fn ingress_object(options: &InstallOptions, ingress: &Ingress) -> Value {
    let backend = json!({"service": {"name": NAME, "port": {"name": "web"}}});
    let mut object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {"rules": [{
            "host": ingress.host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }]},
    });
    if !ingress.class_name.is_empty() {
        object["spec"]["ingressClassName"] = json!(ingress.class_name);
    }
    if !is_empty(&ingress.tls) {
        object["spec"]["tls"] = ingress.tls.clone();
    }
    if !is_empty(&ingress.annotations) {
        object["metadata"]["annotations"] = ingress.annotations.clone();
    }
    object
}

fn http_route(options: &InstallOptions, gateway: &Gateway) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {
            "parentRefs": [{"name": gateway.name, "namespace": gateway.namespace}],
            "hostnames": [gateway.host],
            "rules": [{"backendRefs": [{"name": NAME, "port": WEB_PORT}]}],
        },
    })
}

/// True for a value that is left out.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
