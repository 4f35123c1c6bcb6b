//! References of custom resources: their schemas do not say which text is a name, their field names do.

use serde_json::Value;

use super::walk::{At, Found, Need, is_of_cluster};
use crate::object::ObjectKey;

/// Objects of operators are seldom deeper.
const MOST_DEPTH: usize = 24;

/// Fields whose text names an object: field, group, kind.
const TEXTS: &[(&str, &str, &str)] = &[
    ("claimName", "", "PersistentVolumeClaim"),
    ("configMapName", "", "ConfigMap"),
    ("gatewayClassName", "gateway.networking.k8s.io", "GatewayClass"),
    ("imagePullSecretName", "", "Secret"),
    ("ingressClassName", "networking.k8s.io", "IngressClass"),
    ("persistentVolumeClaimName", "", "PersistentVolumeClaim"),
    ("priorityClassName", "scheduling.k8s.io", "PriorityClass"),
    ("runtimeClassName", "node.k8s.io", "RuntimeClass"),
    ("secretName", "", "Secret"),
    ("serviceAccountName", "", "ServiceAccount"),
    ("storageClassName", "storage.k8s.io", "StorageClass"),
    ("volumeSnapshotClassName", "snapshot.storage.k8s.io", "VolumeSnapshotClass"),
];

/// Fields that hold a map with a name: field, group, kind.
const MAPS: &[(&str, &str, &str)] = &[
    ("authSecretRef", "", "Secret"),
    ("configMap", "", "ConfigMap"),
    ("configMapKeyRef", "", "ConfigMap"),
    ("configMapRef", "", "ConfigMap"),
    ("credentialsSecretRef", "", "Secret"),
    ("passwordSecretRef", "", "Secret"),
    ("privateKeySecretRef", "", "Secret"),
    ("secret", "", "Secret"),
    ("secretKeyRef", "", "Secret"),
    ("secretRef", "", "Secret"),
    ("serviceAccountRef", "", "ServiceAccount"),
    ("tokenSecretRef", "", "Secret"),
];

impl<'object> Found<'object> {
    /// Everything below a place.
    pub(super) fn custom(&mut self, at: &At<'object>, depth: usize) {
        if depth > MOST_DEPTH {
            return;
        }
        match at.value {
            Value::Object(map) => {
                for name in map.keys() {
                    let below = at.get(name);
                    if !self.by_name(name, &below) {
                        self.custom(&below, depth + 1);
                    }
                }
            }
            Value::Array(_) => at.items().for_each(|item| self.custom(&item, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Takes a field whose name says what it refers to; false if there may be more below it.
    fn by_name(&mut self, name: &str, at: &At<'object>) -> bool {
        if let Some((_, group, kind)) = TEXTS.iter().find(|(field, ..)| *field == name) {
            if is_of_cluster(kind) {
                self.cluster(group, kind, at, Need::Works);
            } else {
                self.local(group, kind, at, Need::Works);
            }
            return at.value.is_string();
        }
        if let Some((_, group, kind)) = MAPS.iter().find(|(field, ..)| *field == name) {
            self.named(group, kind, at, Need::Works);
            return at.get("name").value.is_string();
        }
        self.typed(at)
    }

    /// A map that says its kind and its name: `issuerRef`, `storeRef`, `targetRef`, `scaleTargetRef` …
    fn typed(&mut self, at: &At<'object>) -> bool {
        let Some(fields) = at.value.as_object() else { return false };
        let is_reference = |name: &String| {
            matches!(
                name.as_str(),
                "apiGroup"
                    | "apiVersion"
                    | "fieldPath"
                    | "group"
                    | "kind"
                    | "name"
                    | "namespace"
                    | "sectionName"
            ) || matches!(name.as_str(), "port" | "uid" | "weight")
        };
        let (Some(kind), Some(name)) = (at.get("kind").text(), at.get("name").text()) else { return false };
        if !fields.keys().all(is_reference) || !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
            return false;
        }
        let of_version = at.get("apiVersion").text();
        let of_version = of_version.map(|text| text.rsplit_once('/').map_or("", |(group, _)| group));
        let group = at.get("group").text().or(at.get("apiGroup").text()).or(of_version).unwrap_or_default();
        let namespace =
            if is_of_cluster(kind) { None } else { at.get("namespace").text().or(self.namespace) };
        let key = ObjectKey::new(group, kind, namespace.map(str::to_owned), name);
        self.push(key, at.get("name").path, Need::Works);
        true
    }
}
