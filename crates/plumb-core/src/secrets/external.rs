//! Checks of `ExternalSecrets` that need no operator: does the store exist, are the keys well-formed, does each Secret
//! have one writer?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::plain::Values;
use super::sealed::is_sealed_secret;
use super::uses::items;
use crate::health::{ExpectedSecret, SecretOwner, expected_secret};
use crate::normalize::is_secret;
use crate::object::{FieldPath, Manifest, ObjectKey};

const GROUP: &str = "external-secrets.io";

/// One problem of an object that makes a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalProblem {
    /// Which object.
    pub key: ObjectKey,
    /// The field; the root if the whole object is meant.
    pub field: FieldPath,
    /// What is wrong with it.
    pub what: String,
    /// What kind of problem it is.
    pub kind: ExternalProblemKind,
}

/// What can be wrong with an object that makes a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalProblemKind {
    /// This store is not among the known objects.
    UnknownStore(ObjectKey),
    /// A key or reference that cannot work.
    Malformed,
    /// Another object makes the same Secret.
    TwoWriters,
}

/// The problems of all `ExternalSecrets` and `SealedSecrets` among these objects. `known_stores` are stores that exist
/// elsewhere, such as in the cluster: keys of `SecretStore` and `ClusterSecretStore`.
pub fn external_problems(objects: &[&Manifest], known_stores: &BTreeSet<ObjectKey>) -> Vec<ExternalProblem> {
    let mut stores: BTreeSet<ObjectKey> = objects.iter().filter_map(|object| store_key(object)).collect();
    stores.extend(known_stores.iter().cloned());
    let mut problems = writers_of_one_secret(objects);
    for object in objects {
        let Some(key) = object.key().filter(|key| key.group == GROUP && key.kind == "ExternalSecret") else {
            continue;
        };
        let mut add = |field, what, kind| {
            problems.push(ExternalProblem { key: key.clone(), field, what, kind });
        };
        for (field, store) in missing_stores(object, &stores) {
            match store {
                Some(store) => {
                    let what = format!("{} {} does not exist", store.kind, store.name);
                    add(field, what, ExternalProblemKind::UnknownStore(store));
                }
                None => add(field, "it names no store".to_owned(), ExternalProblemKind::Malformed),
            }
        }
        for (field, what) in bad_keys(object) {
            add(field, what, ExternalProblemKind::Malformed);
        }
    }
    problems.sort_by(|one, other| (&one.key, &one.what).cmp(&(&other.key, &other.what)));
    problems.dedup();
    problems
}

/// The key of a store. One of the whole cluster has no namespace, whatever its manifest says.
pub fn store_key(object: &Manifest) -> Option<ObjectKey> {
    let key = object.key().filter(|key| key.group == GROUP)?;
    match key.kind.as_str() {
        "SecretStore" => Some(key),
        "ClusterSecretStore" => Some(key.with_namespace(None)),
        _ => None,
    }
}

/// Two objects that make one Secret overwrite each other for ever. One that merges into it does not. A Secret that is
/// itself among the objects has a writer, too: whoever applies it.
fn writers_of_one_secret(objects: &[&Manifest]) -> Vec<ExternalProblem> {
    let mut writers: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
    for object in objects {
        if let Some(expected) = expected_secret(object).filter(|expected| !merges(object, expected)) {
            writers.entry(expected.secret).or_default().extend(object.key());
        }
    }
    for key in objects.iter().filter(|object| is_secret(object)).filter_map(|object| object.key()) {
        writers.entry(key.clone()).and_modify(|makers| makers.push(key));
    }
    let several = writers.iter().filter(|(_, keys)| keys.len() > 1);
    several
        .flat_map(|(secret, keys)| {
            keys.iter().filter(move |key| *key != secret).map(move |key| {
                let mut others: Vec<String> = keys
                    .iter()
                    .filter(|other| *other != key && *other != secret)
                    .map(|other| format!("so does {} {}", other.kind, other.name))
                    .collect();
                if keys.contains(secret) {
                    others.push("the manifests have it, too".to_owned());
                }
                ExternalProblem {
                    key: key.clone(),
                    field: FieldPath::root(),
                    what: format!("it makes Secret {}, and {}", secret.name, others.join(", and ")),
                    kind: ExternalProblemKind::TwoWriters,
                }
            })
        })
        .collect()
}

/// Does the object only add to a Secret that something else makes?
fn merges(object: &Manifest, expected: &ExpectedSecret) -> bool {
    let policy = object.value().pointer("/spec/target/creationPolicy").and_then(Value::as_str);
    policy == Some("Merge") || is_sealed_secret(object.value()) && expected.ownership == SecretOwner::Shared
}

/// Stores that the object names and nobody has; `None` where it has to name one.
fn missing_stores(object: &Manifest, stores: &BTreeSet<ObjectKey>) -> Vec<(FieldPath, Option<ObjectKey>)> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let spec_path = FieldPath::root().field("spec");
    let mut named = Vec::new();
    let mut needs_own = false;
    for list in ["data", "dataFrom"] {
        for (number, data) in items(spec, list).enumerate() {
            let source = data.get("sourceRef");
            let path = spec_path.field(list).index(number).field("sourceRef");
            let store = source.and_then(|source| source.get("storeRef"));
            // A generator needs no store.
            needs_own |= source.is_none_or(|source| !source.is_object());
            named.extend(store.map(|store| (path.field("storeRef"), store)));
        }
    }
    let own = spec.get("secretStoreRef");
    named.extend(own.map(|store| (spec_path.field("secretStoreRef"), store)));
    let mut missing = Vec::new();
    if own.is_none() && needs_own {
        missing.push((spec_path, None));
    }
    for (path, store) in named {
        let text = |field: &str| store.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = if text("kind").is_empty() { "SecretStore" } else { text("kind") };
        let namespace = (kind == "SecretStore").then(|| object.namespace().map(str::to_owned)).flatten();
        let store = ObjectKey::new(GROUP, kind, namespace, text("name"));
        if text("name").is_empty() {
            missing.push((path, None));
        } else if !stores.contains(&store) {
            missing.push((path.field("name"), Some(store)));
        }
    }
    missing
}

/// Keys that a Secret cannot have, keys that are given twice, and references without a key.
fn bad_keys(object: &Manifest) -> Vec<(FieldPath, String)> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let list = |name: &str| FieldPath::root().field("spec").field(name);
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, data) in items(spec, "data").enumerate() {
        let key = data.get("secretKey").and_then(Value::as_str).unwrap_or_default();
        let path = list("data").index(number);
        let at_key = || path.field("secretKey");
        if !Values::is_key(key) {
            let what = format!("spec.data[{number}].secretKey is {key:?}, which no Secret can have as a key");
            problems.push((at_key(), what));
        } else if !seen.insert(key) {
            problems.push((at_key(), format!("spec.data[{number}].secretKey is {key} again")));
        }
        // A generator makes the value itself.
        let is_generated = data.pointer("/sourceRef/generatorRef").is_some();
        problems.extend(
            bad_reference(data, "remoteRef", is_generated)
                .map(|what| (path.field("remoteRef").field("key"), format!("spec.data[{number}].{what}"))),
        );
    }
    for (number, from) in items(spec, "dataFrom").enumerate() {
        let has = |field: &str| from.get(field).is_some_and(|value| !value.is_null());
        let path = list("dataFrom").index(number);
        let of_path = format!("spec.dataFrom[{number}]");
        if !["extract", "find", "sourceRef"].into_iter().any(has) {
            problems.push((path, format!("{of_path} has neither `extract` nor `find`")));
        } else if has("extract") {
            problems.extend(
                bad_reference(from, "extract", false)
                    .map(|what| (path.field("extract").field("key"), format!("{of_path}.{what}"))),
            );
        }
    }
    let n_from = items(spec, "dataFrom").count();
    let template = spec.pointer("/target/template");
    let templated = template.and_then(|template| template.get("data")).and_then(Value::as_object);
    let from_files = template.is_some_and(|template| items(template, "templateFrom").next().is_some());
    if seen.is_empty()
        && n_from == 0
        && problems.is_empty()
        && !from_files
        && templated.is_none_or(serde_json::Map::is_empty)
    {
        let what = "it fetches nothing: spec.data and spec.dataFrom are empty".to_owned();
        problems.push((FieldPath::root().field("spec"), what));
    }
    problems
}

/// What is wrong with the key of a reference into a store.
fn bad_reference(holder: &Value, field: &str, may_lack: bool) -> Option<String> {
    let key = holder.get(field).and_then(|reference| reference.get("key")).and_then(Value::as_str);
    let key = key.unwrap_or_default();
    let is_bad = key.is_empty() && !may_lack || key.trim() != key;
    is_bad.then(|| format!("{field}.key is {key:?}, which names nothing"))
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
        let objects: Vec<&Manifest> = objects.iter().collect();
        let problems = external_problems(&objects, &known);
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
        // A store of the whole cluster whose manifest names a namespace, as the destination of an app adds it.
        let mut vault = object("ClusterSecretStore", "vault", &json!({})).into_value();
        vault["metadata"]["namespace"] = json!("shop");
        let whole = json!({"kind": "ClusterSecretStore", "name": "vault"});
        check(&[external("a", &whole, &json!({})), Manifest::new(vault).unwrap()], &[]);
        // Without a store of its own, every value has to name one; a generator needs none.
        let data = json!([{"secretKey": "a", "remoteRef": {"key": "x"}}]);
        check(&[object("ExternalSecret", "a", &json!({"data": data}))], &["a: it names no store"]);
        let generated = json!([{"sourceRef": {"generatorRef": {"kind": "Password", "name": "p"}}}]);
        check(&[object("ExternalSecret", "a", &json!({"dataFrom": generated}))], &[]);
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
        let from = |from: Value| external("a", &store(), &json!({"dataFrom": from}));
        check(
            &[from(json!([{"extract": {"key": ""}}, {}, {"find": {"path": "x"}}]))],
            &[
                "a: spec.dataFrom[0].extract.key is \"\", which names nothing",
                "a: spec.dataFrom[1] has neither `extract` nor `find`",
            ],
        );
        let files =
            json!({"data": [], "target": {"template": {"templateFrom": [{"configMap": {"name": "a"}}]}}});
        check(&[external("a", &store(), &files)], &[]);
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
        check(&[a.clone(), external("b", &store(), &json!({}))], &[]);
        let map =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}});
        let in_git = Manifest::new(map).unwrap();
        check(&[a, in_git.clone()], &["a: it makes Secret db, and the manifests have it, too"]);
        check(&[external("b", &store(), &target("Merge")), in_git.clone()], &[]);
        let patch = json!({"encryptedData": {}, "template": {"metadata": {
            "annotations": {"sealedsecrets.bitnami.com/patch": "true"}}}});
        check(&[object("SealedSecret", "db", &patch), in_git], &[]);
    }

    #[test]
    fn an_external_secret_to_fill_in_has_no_problem_but_its_store() {
        let secret = ObjectKey::new("", "Secret", Some("shop".to_owned()), "db");
        let offered = Manifest::new(external_secret_for(&secret, &["password".to_owned()])).unwrap();
        check(&[offered], &["db: ClusterSecretStore STORE does not exist"]);
    }
}
