//! Secrets that the workloads of apps use and that nothing in Git stands for: production state that Git does not know.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::uses::{pull_secrets, secrets_used, service_account};
use super::writers::{Writer, first_writer};
use crate::app::AppId;
use crate::object::{Manifest, ObjectKey};

/// A Secret that workloads of apps use and that nobody can make again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSecret {
    /// Which one.
    pub key: ObjectKey,
    /// The names of its values.
    pub keys: Vec<String>,
    /// Its type, such as `kubernetes.io/tls`.
    pub secret_type: Option<String>,
    /// Who created it, as far as the object tells.
    pub created_by: Option<Writer>,
    /// When.
    pub created_at: Option<Timestamp>,
    /// The apps whose workloads use it.
    pub apps: BTreeSet<AppId>,
    /// The pods that use it now.
    pub pods: Vec<String>,
}

/// What is known about the apps of a cluster.
#[derive(Clone, Debug, Default)]
pub struct SecretFacts {
    /// Workloads with pod templates, by the app that has them.
    pub workloads: Vec<(AppId, Manifest)>,
    /// The pods of the apps' namespaces.
    pub pods: Vec<Manifest>,
    /// The `ServiceAccounts` of the apps' namespaces.
    pub accounts: Vec<Manifest>,
    /// The Secrets of the apps' namespaces.
    pub secrets: Vec<Manifest>,
    /// The Secrets that apps render.
    pub rendered: BTreeSet<ObjectKey>,
    /// The Secrets that objects of operators stand for
    /// ([`expected_secret`](crate::health::expected_secret)).
    pub expected: BTreeSet<ObjectKey>,
}

/// The Secrets that workloads use, that no app renders and that no controller makes. Sorted by key.
pub fn unknown_secrets(facts: &SecretFacts) -> Vec<UnknownSecret> {
    let mut users: BTreeMap<ObjectKey, BTreeSet<AppId>> = BTreeMap::new();
    for (app, workload) in &facts.workloads {
        for name in secrets_used(workload.value()).into_iter().chain(pulled_with(facts, workload)) {
            users.entry(secret_key(workload.namespace(), &name)).or_default().insert(app.clone());
        }
    }
    let mut pods: BTreeMap<ObjectKey, Vec<String>> = BTreeMap::new();
    for pod in &facts.pods {
        for name in secrets_used(pod.value()) {
            let names = pods.entry(secret_key(pod.namespace(), &name)).or_default();
            names.extend(pod.name().map(str::to_owned));
        }
    }
    let mut unknown: Vec<UnknownSecret> = facts
        .secrets
        .iter()
        .filter(|secret| !is_made(secret))
        .filter_map(|secret| {
            let key = secret_key(secret.namespace(), secret.name()?);
            let apps = users.remove(&key)?;
            if facts.rendered.contains(&key) || facts.expected.contains(&key) {
                return None;
            }
            Some(UnknownSecret {
                keys: keys_of(secret),
                secret_type: secret.value().get("type").and_then(Value::as_str).map(str::to_owned),
                created_by: first_writer(secret),
                created_at: secret.created_at(),
                pods: pods.remove(&key).unwrap_or_default(),
                apps,
                key,
            })
        })
        .collect();
    unknown.sort_by(|one, other| one.key.cmp(&other.key));
    unknown
}

/// The Secrets with which the `ServiceAccount` of a workload pulls images.
fn pulled_with(facts: &SecretFacts, workload: &Manifest) -> BTreeSet<String> {
    let Some(name) = service_account(workload.value()) else { return BTreeSet::new() };
    let is_it =
        |account: &&Manifest| account.name() == Some(name) && account.namespace() == workload.namespace();
    facts.accounts.iter().find(is_it).map(|account| pull_secrets(account.value())).unwrap_or_default()
}

fn secret_key(namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey::new("", "Secret", namespace.map(str::to_owned), name)
}

/// The names of the values of a Secret.
pub(super) fn keys_of(secret: &Manifest) -> Vec<String> {
    let data = secret.value().get("data").and_then(Value::as_object);
    data.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// Does a controller make it? Then it comes back by itself.
fn is_made(secret: &Manifest) -> bool {
    const TYPES: [&str; 3] =
        ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"];
    const LABELS: [&str; 3] = [
        "argocd.argoproj.io/secret-type",
        "sealedsecrets.bitnami.com/sealed-secrets-key",
        "controller.cert-manager.io/fao",
    ];
    let owners = secret.value().pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let secret_type = secret.value().get("type").and_then(Value::as_str).unwrap_or_default();
    owners.is_some_and(|owners| !owners.is_empty())
        || TYPES.contains(&secret_type)
        || LABELS.iter().any(|label| secret.label(label).is_some())
        || secret.annotation("cert-manager.io/certificate-name").is_some()
        || secret.annotation("reflector.v1.k8s.emberstack.com/reflects").is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    fn secret(name: &str, metadata: &Value) -> Manifest {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-02T03:04:05Z",
                "managedFields": [{"manager": "kubectl-create", "operation": "Update", "apiVersion": "v1",
                    "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]},
            "data": {"user": "YQ==", "password": "aHVudGVyMg=="}});
        let more = metadata.as_object().unwrap().clone();
        object["metadata"].as_object_mut().unwrap().extend(more);
        Manifest::new(object).unwrap()
    }

    fn user(kind: &str, name: &str, secrets: &[&str]) -> Manifest {
        let from: Vec<Value> = secrets.iter().map(|name| json!({"secretRef": {"name": name}})).collect();
        let spec = json!({"containers": [{"envFrom": from}]});
        let spec = if kind == "Pod" { spec } else { json!({"template": {"spec": spec}}) };
        let version = if kind == "Pod" { "v1" } else { "apps/v1" };
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"},
            "spec": spec});
        Manifest::new(object).unwrap()
    }

    #[test]
    fn what_a_service_account_pulls_images_with_is_used() {
        let account = |name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": "shop"}, "imagePullSecrets": [{"name": "by-hand"}]});
            Manifest::new(object).unwrap()
        };
        let found = |accounts: Vec<Manifest>| {
            let facts = SecretFacts {
                workloads: vec![(app("shop"), user("Deployment", "web", &[]))],
                secrets: vec![secret("by-hand", &json!({}))],
                accounts,
                ..SecretFacts::default()
            };
            unknown_secrets(&facts).len()
        };
        assert_eq!((found(vec![account("default")]), found(vec![account("other")])), (1, 0));
    }

    #[test]
    fn only_what_nothing_stands_for_is_named() {
        let owner =
            json!({"ownerReferences": [{"kind": "SealedSecret", "name": "owned", "controller": true}]});
        let certificate = json!({"annotations": {"cert-manager.io/certificate-name": "tls"}});
        let names = ["by-hand", "owned", "tls", "rendered", "patched"];
        let facts = SecretFacts {
            workloads: vec![
                (app("shop"), user("Deployment", "web", &names)),
                (app("cart"), user("StatefulSet", "cart", &["by-hand", "absent"])),
            ],
            pods: vec![user("Pod", "web-1", &["by-hand"]), user("Pod", "cart-0", &["by-hand", "owned"])],
            accounts: Vec::new(),
            secrets: vec![
                secret("by-hand", &json!({})),
                secret("unused", &json!({})),
                secret("owned", &owner),
                secret("tls", &certificate),
                secret("rendered", &json!({})),
                secret("patched", &json!({})),
            ],
            rendered: BTreeSet::from([secret_key(Some("shop"), "rendered")]),
            expected: BTreeSet::from([secret_key(Some("shop"), "patched")]),
        };
        let unknown = unknown_secrets(&facts);
        let [only] = unknown.as_slice() else { panic!("{unknown:?}") };
        assert_eq!(only.key, secret_key(Some("shop"), "by-hand"));
        assert_eq!(only.keys, ["password", "user"]);
        assert_eq!(only.pods, ["web-1", "cart-0"]);
        assert_eq!(only.apps.len(), 2);
        assert_eq!(only.created_by.as_ref().map(|writer| writer.manager.as_str()), Some("kubectl-create"));
        assert!(!format!("{only:?}").contains("aHVudGVyMg"));
    }
}
