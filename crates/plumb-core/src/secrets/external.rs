//! Checks of `ExternalSecrets` that need no operator: does the store exist, are the keys well-formed, does each Secret
//! have one writer?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::plain::Values;
use super::uses::items;
use crate::health::expected_secret;
use crate::object::{Manifest, ObjectKey};

const GROUP: &str = "external-secrets.io";

/// One problem of an object that makes a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExternalProblem {
    /// Which object.
    pub key: ObjectKey,
    /// What is wrong with it.
    pub what: String,
}

/// The problems of all `ExternalSecrets` and `SealedSecrets` among these objects. `known_stores` are stores that exist
/// elsewhere, such as in the cluster: keys of `SecretStore` and `ClusterSecretStore`.
pub fn external_problems(objects: &[Manifest], known_stores: &BTreeSet<ObjectKey>) -> Vec<ExternalProblem> {
    let is_store = |object: &&Manifest| {
        object.group() == GROUP && matches!(object.kind(), "SecretStore" | "ClusterSecretStore")
    };
    let mut stores: BTreeSet<ObjectKey> = objects.iter().filter(is_store).filter_map(Manifest::key).collect();
    stores.extend(known_stores.iter().cloned());
    let mut problems = writers_of_one_secret(objects);
    for object in objects {
        let Some(key) = object.key().filter(|key| key.group == GROUP && key.kind == "ExternalSecret") else {
            continue;
        };
        let found = missing_stores(object, &stores).into_iter().chain(bad_keys(object));
        problems.extend(found.map(|what| ExternalProblem { key: key.clone(), what }));
    }
    problems.sort();
    problems.dedup();
    problems
}

/// Two objects that make one Secret overwrite each other for ever. One that merges into it does not.
fn writers_of_one_secret(objects: &[Manifest]) -> Vec<ExternalProblem> {
    let mut writers: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
    for object in objects {
        let merges =
            object.value().pointer("/spec/target/creationPolicy").and_then(Value::as_str) == Some("Merge");
        if let (Some(expected), Some(key), false) = (expected_secret(object), object.key(), merges) {
            writers.entry(expected.secret).or_default().push(key);
        }
    }
    let several = writers.iter().filter(|(_, keys)| keys.len() > 1);
    several
        .flat_map(|(secret, keys)| {
            keys.iter().map(move |key| {
                let others: Vec<String> = keys
                    .iter()
                    .filter(|other| *other != key)
                    .map(|other| format!("{} {}", other.kind, other.name))
                    .collect();
                let what = format!("it makes Secret {}, and so does {}", secret.name, others.join(", "));
                ExternalProblem { key: key.clone(), what }
            })
        })
        .collect()
}

/// Stores that the object names and nobody has.
fn missing_stores(object: &Manifest, stores: &BTreeSet<ObjectKey>) -> Vec<String> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let own = spec.get("secretStoreRef").into_iter();
    let of_data = items(spec, "data").chain(items(spec, "dataFrom"));
    let of_data = of_data.filter_map(|data| data.pointer("/sourceRef/storeRef"));
    let mut missing = Vec::new();
    for store in own.chain(of_data) {
        let text = |field: &str| store.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = if text("kind").is_empty() { "SecretStore" } else { text("kind") };
        let namespace = (kind == "SecretStore").then(|| object.namespace().map(str::to_owned)).flatten();
        if text("name").is_empty() {
            missing.push("it names no store".to_owned());
        } else if !stores.contains(&ObjectKey::new(GROUP, kind, namespace, text("name"))) {
            missing.push(format!("{kind} {} does not exist", text("name")));
        }
    }
    missing
}

/// Keys that a Secret cannot have, keys that are given twice, and references without a key.
fn bad_keys(object: &Manifest) -> Vec<String> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, data) in items(spec, "data").enumerate() {
        let key = data.get("secretKey").and_then(Value::as_str).unwrap_or_default();
        if !Values::is_key(key) {
            problems
                .push(format!("spec.data[{number}].secretKey is {key:?}, which no Secret can have as a key"));
        } else if !seen.insert(key) {
            problems.push(format!("spec.data[{number}].secretKey is {key} again"));
        }
        let remote = data.pointer("/remoteRef/key").and_then(Value::as_str).unwrap_or_default();
        if remote.trim() != remote || remote.is_empty() {
            problems.push(format!("spec.data[{number}].remoteRef.key is {remote:?}, which names nothing"));
        }
    }
    let n_from = items(spec, "dataFrom").count();
    let templated = spec.pointer("/target/template/data").and_then(Value::as_object);
    if seen.is_empty()
        && n_from == 0
        && problems.is_empty()
        && templated.is_none_or(serde_json::Map::is_empty)
    {
        problems.push("it fetches nothing: spec.data and spec.dataFrom are empty".to_owned());
    }
    problems
}

/// An `ExternalSecret` that would make a Secret like this one, to fill in. It names keys, no values.
pub fn external_secret_for(secret: &ObjectKey, keys: &[String]) -> Value {
    let data: Vec<Value> = keys
        .iter()
        .map(|key| json!({"secretKey": key, "remoteRef": {"key": format!("{}/{}", secret.namespace_or_empty(), secret.name), "property": key}}))
        .collect();
    json!({
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": secret.name, "namespace": secret.namespace},
        "spec": {
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": "STORE"},
            "target": {"name": secret.name},
            "data": data,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, spec: &Value) -> Manifest {
        let version = if kind == "SealedSecret" { "bitnami.com/v1alpha1" } else { "external-secrets.io/v1" };
        let mut object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        if kind != "ClusterSecretStore" {
            object["metadata"]["namespace"] = json!("shop");
        }
        Manifest::new(object).unwrap()
    }

    fn external(name: &str, store: &Value, more: &Value) -> Manifest {
        let mut spec = json!({"secretStoreRef": store,
            "data": [{"secretKey": "password", "remoteRef": {"key": "shop/db"}}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("ExternalSecret", name, &spec)
    }

    fn check(objects: &[Manifest], expected: &[&str]) {
        let known = BTreeSet::from([ObjectKey::new(GROUP, "ClusterSecretStore", None, "of-the-cluster")]);
        let problems = external_problems(objects, &known);
        let shown: Vec<String> =
            problems.iter().map(|one| format!("{}: {}", one.key.name, one.what)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_store_has_to_exist() {
        let here = json!({"name": "vault"});
        check(&[external("a", &here, &json!({})), object("SecretStore", "vault", &json!({}))], &[]);
        check(
            &[external("a", &json!({"kind": "ClusterSecretStore", "name": "of-the-cluster"}), &json!({}))],
            &[],
        );
        check(&[external("a", &here, &json!({}))], &["a: SecretStore vault does not exist"]);
        let cluster = object("ClusterSecretStore", "vault", &json!({}));
        check(&[external("a", &here, &json!({})), cluster], &["a: SecretStore vault does not exist"]);
        check(&[external("a", &json!({}), &json!({}))], &["a: it names no store"]);
        let from =
            json!({"dataFrom": [{"sourceRef": {"storeRef": {"name": "other"}}, "extract": {"key": "x"}}]});
        let store = json!({"kind": "ClusterSecretStore", "name": "of-the-cluster"});
        check(&[external("a", &store, &from)], &["a: SecretStore other does not exist"]);
    }

    #[test]
    fn keys_have_to_be_keys() {
        let store = || json!({"kind": "ClusterSecretStore", "name": "of-the-cluster"});
        let data = |data: Value| external("a", &store(), &json!({"data": data}));
        check(
            &[data(
                json!([{"secretKey": "a b", "remoteRef": {"key": "x"}}, {"secretKey": "c", "remoteRef": {"key": ""}},
                {"secretKey": "c", "remoteRef": {"key": "y "}}, {}]),
            )],
            &[
                "a: spec.data[0].secretKey is \"a b\", which no Secret can have as a key",
                "a: spec.data[1].remoteRef.key is \"\", which names nothing",
                "a: spec.data[2].remoteRef.key is \"y \", which names nothing",
                "a: spec.data[2].secretKey is c again",
                "a: spec.data[3].remoteRef.key is \"\", which names nothing",
                "a: spec.data[3].secretKey is \"\", which no Secret can have as a key",
            ],
        );
        check(&[data(json!([]))], &["a: it fetches nothing: spec.data and spec.dataFrom are empty"]);
        check(&[external("a", &store(), &json!({"data": [], "dataFrom": [{"extract": {"key": "x"}}]}))], &[]);
    }

    #[test]
    fn a_secret_has_one_writer() {
        let store = || json!({"kind": "ClusterSecretStore", "name": "of-the-cluster"});
        let target = |policy: &str| json!({"target": {"name": "db", "creationPolicy": policy}});
        let a = external("a", &store(), &target("Owner"));
        let sealed = object("SealedSecret", "db", &json!({"encryptedData": {}}));
        check(
            &[a.clone(), sealed],
            &[
                "db: it makes Secret db, and so does ExternalSecret a",
                "a: it makes Secret db, and so does SealedSecret db",
            ],
        );
        check(&[a.clone(), external("b", &store(), &target("Merge"))], &[]);
        check(&[a, external("b", &store(), &json!({}))], &[]);
    }

    #[test]
    fn an_external_secret_to_fill_in_has_no_problem_but_its_store() {
        let secret = ObjectKey::new("", "Secret", Some("shop".to_owned()), "db");
        let offered = Manifest::new(external_secret_for(&secret, &["password".to_owned()])).unwrap();
        check(&[offered], &["db: ClusterSecretStore STORE does not exist"]);
    }
}
