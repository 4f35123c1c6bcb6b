//! Which Secrets the pods of a workload use.

use std::collections::BTreeSet;

use serde_json::Value;

/// The pod spec of a pod, or of a workload that makes pods.
pub(super) fn pod_spec(object: &Value) -> Option<&Value> {
    const PLACES: [&str; 3] = ["/spec/jobTemplate/spec/template/spec", "/spec/template/spec", "/spec"];
    PLACES.iter().filter_map(|place| object.pointer(place)).find(|spec| spec.get("containers").is_some())
}

pub(super) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|field| items(spec, field))
}

pub(super) fn items<'value>(value: &'value Value, field: &str) -> impl Iterator<Item = &'value Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Where a volume names a Secret, besides the sources of a projected one.
const VOLUME_SECRETS: [&str; 9] = [
    "/secret/secretName",
    "/csi/nodePublishSecretRef/name",
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/storageos/secretRef/name",
];

/// The names of the Secrets that a pod or the pods of a workload use: in variables, in volumes, and to pull images.
pub fn secrets_used(object: &Value) -> BTreeSet<String> {
    let Some(spec) = pod_spec(object) else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let mut take = |value: &Value, path: &str| {
        names.extend(
            value.pointer(path).and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned),
        );
    };
    for container in containers(spec) {
        items(container, "env").for_each(|variable| take(variable, "/valueFrom/secretKeyRef/name"));
        items(container, "envFrom").for_each(|source| take(source, "/secretRef/name"));
    }
    items(spec, "imagePullSecrets").for_each(|secret| take(secret, "/name"));
    for volume in items(spec, "volumes") {
        for path in VOLUME_SECRETS {
            take(volume, path);
        }
        let sources = volume.get("projected").into_iter().flat_map(|projected| items(projected, "sources"));
        sources.for_each(|source| take(source, "/secret/name"));
    }
    names
}

/// The `ServiceAccount` of the pods of a workload; `None` if the object has no pods.
pub(super) fn service_account(object: &Value) -> Option<&str> {
    let spec = pod_spec(object)?;
    let names = ["serviceAccountName", "serviceAccount"].into_iter();
    let mut names = names.filter_map(|field| spec.get(field).and_then(Value::as_str));
    Some(names.find(|name| !name.is_empty()).unwrap_or("default"))
}

/// The Secrets with which the pods of a `ServiceAccount` pull images.
pub(super) fn pull_secrets(account: &Value) -> BTreeSet<String> {
    let names = items(account, "imagePullSecrets").filter_map(|secret| secret.get("name")?.as_str());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_use_a_secret_is_found() {
        let spec = json!({
            "imagePullSecrets": [{"name": "pull"}, {}],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "init"}}, {"configMapRef": {"name": "no"}}]}],
            "containers": [{"env": [{"name": "A", "value": "x"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "env", "key": "b"}}}]}],
            "volumes": [{"secret": {"secretName": "volume"}}, {"projected": {"sources": [{"secret": {"name": "projected"}}]}},
                {"csi": {"nodePublishSecretRef": {"name": "csi"}}}, {"emptyDir": {}},
                {"azureFile": {"secretName": "azure", "shareName": "no"}}, {"cephfs": {"secretRef": {"name": "ceph"}}},
                {"flexVolume": {"secretRef": {"name": "flex"}}}, {"iscsi": {"secretRef": {"name": "iscsi"}}},
                {"rbd": {"secretRef": {"name": "rbd"}}}, {"scaleIO": {"secretRef": {"name": "scale"}}},
                {"storageos": {"secretRef": {"name": "storageos"}}}],
        });
        let all = [
            "azure",
            "ceph",
            "csi",
            "env",
            "flex",
            "init",
            "iscsi",
            "projected",
            "pull",
            "rbd",
            "scale",
            "storageos",
            "volume",
        ];
        for object in [
            json!({"spec": spec}),
            json!({"spec": {"template": {"spec": spec}}}),
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}),
        ] {
            assert_eq!(secrets_used(&object).iter().map(String::as_str).collect::<Vec<_>>(), all);
        }
        for nothing in [json!({}), json!({"spec": {"containers": "x"}}), json!([1])] {
            assert!(secrets_used(&nothing).is_empty());
        }
    }
}
