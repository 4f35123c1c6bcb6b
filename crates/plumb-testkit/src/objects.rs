//! Small makers of Kubernetes objects. They name no namespace: a [`TestNamespace`] puts them
//! into its own, and in Git the application's destination does.
//!
//! [`TestNamespace`]: crate::TestNamespace

use serde_json::{Value, json};

/// A `ConfigMap` with these entries.
pub fn config_map(name: &str, data: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": entries(data)})
}

/// A Secret with these entries in plain text.
pub fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": entries(data)})
}

/// A Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A `ServiceAccount`.
pub fn service_account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
}

/// A Deployment of one container, whose pods carry `app: <name>`.
pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector(name), "template": pod_template(name)},
    })
}

/// A `StatefulSet` of one container, whose pods carry `app: <name>`.
pub fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": selector(name),
            "template": pod_template(name),
        },
    })
}

/// A `DaemonSet` of one container, whose pods carry `app: <name>`.
pub fn daemon_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"selector": selector(name), "template": pod_template(name)},
    })
}

/// A Service for the pods that carry `app: <name>`.
pub fn service(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": port}]},
    })
}

/// A Job of one pod that is not tried again.
pub fn job(name: &str) -> Value {
    let mut template = pod_template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": template},
    })
}

/// A pod of its own.
pub fn pod(name: &str) -> Value {
    let template = pod_template(name);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    })
}

/// A claim on a volume of the default class.
pub fn volume_claim(name: &str, size: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    })
}

/// An autoscaler on a Deployment.
pub fn autoscaler(name: &str, target: &str, min: u32, max: u32) -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": min,
            "maxReplicas": max,
            "metrics": [{
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }],
        },
    })
}

/// A namespaced custom resource definition with version `v1`, a status, and the given schema
/// of `spec`. The plural is the lower-case kind and an `s`.
pub fn crd(group: &str, kind: &str, spec_schema: &Value) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec_schema,
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// An instance of a kind made by [`crd`].
pub fn custom(group: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// An Application of a directory in a repository, in project `default`, without automation.
pub fn application(name: &str, repo_url: &str, path: &str, destination_namespace: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name},
        "spec": {
            "project": "default",
            "source": {"repoURL": repo_url, "path": path, "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": destination_namespace},
        },
    })
}

/// A project that allows everything.
pub fn app_project(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": name},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}

/// What the cluster's stages let a pod suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Starts, fails, waits in `CrashLoopBackOff`, again and again.
    CrashLoop,
    /// Waits in `ImagePullBackOff`.
    ImagePullBackOff,
    /// Runs and never becomes ready.
    NotReady,
    /// Runs and ends with a failure.
    Fail,
    /// The pod of a job that does not end.
    Hold,
}

impl Trouble {
    /// The label that brings it, with value `"true"`; taking it off the pod ends it.
    pub fn label(self) -> &'static str {
        match self {
            Self::CrashLoop => "plumb.dev/crash-loop",
            Self::ImagePullBackOff => "plumb.dev/image-pull-back-off",
            Self::NotReady => "plumb.dev/not-ready",
            Self::Fail => "plumb.dev/fail",
            Self::Hold => "plumb.dev/hold",
        }
    }
}

/// The same pod or workload, with trouble for its pods.
pub fn troubled(object: Value, trouble: Trouble) -> Value {
    let pointer = if object["kind"] == "Pod" { "/metadata/labels" } else { "/spec/template/metadata/labels" };
    with(object, &format!("{pointer}/{}", trouble.label().replace('/', "~1")), json!("true"))
}

/// The same object with a label.
pub fn labelled(object: Value, key: &str, value: &str) -> Value {
    with(object, &format!("/metadata/labels/{}", key.replace('/', "~1")), json!(value))
}

/// The same object with an annotation.
pub fn annotated(object: Value, key: &str, value: &str) -> Value {
    with(object, &format!("/metadata/annotations/{}", key.replace('/', "~1")), json!(value))
}

/// The same object in a namespace.
pub fn in_namespace(object: Value, namespace: &str) -> Value {
    with(object, "/metadata/namespace", json!(namespace))
}

/// The same object with a value at a JSON pointer; missing maps on the way are made. Only maps
/// are walked: a list index must exist.
pub fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let mut place = &mut object;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        place = match step.parse::<usize>() {
            Ok(index) if place.is_array() => &mut place[index],
            _ => &mut place[step],
        };
    }
    *place = value;
    object
}

/// The objects as one file for a repository. JSON is YAML.
pub fn manifests(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object:#}\n")).collect::<Vec<_>>().concat()
}

fn entries(data: &[(&str, &str)]) -> Value {
    data.iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn selector(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

fn pod_template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_reach_where_they_are_meant_to() {
        let crashing = troubled(deployment("web", 2), Trouble::CrashLoop);
        assert_eq!(crashing["spec"]["template"]["metadata"]["labels"]["plumb.dev/crash-loop"], "true");
        assert_eq!(troubled(pod("p"), Trouble::Fail)["metadata"]["labels"]["plumb.dev/fail"], "true");
        let image = with(crashing, "/spec/template/spec/containers/0/image", json!("other"));
        assert_eq!(image["spec"]["template"]["spec"]["containers"][0]["image"], "other");
        assert_eq!(annotated(pod("p"), "a/b", "c")["metadata"]["annotations"]["a/b"], "c");
    }
}
