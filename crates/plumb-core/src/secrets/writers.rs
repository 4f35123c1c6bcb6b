//! Who wrote a Secret, from its `managedFields` and the note of the witness. Values are not read.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::health::expected_secret;
use crate::object::Manifest;
use crate::text::one_line;
use crate::witness::Note;

/// Who wrote something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The field manager; the client chose the name.
    pub manager: String,
    /// The user, if the witness saw the request.
    pub user: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.user {
            Some(user) => write!(f, "{} with {}", one_line(user), one_line(&self.manager)),
            None => f.write_str(&one_line(&self.manager)),
        }
    }
}

/// A part of a derived Secret that somebody else than its controller wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandEdit {
    /// Who.
    pub writer: Writer,
    /// Which keys.
    pub keys: Vec<String>,
    /// Were the keys removed? Then nothing of them is left but what the controller would write.
    pub is_removal: bool,
}

/// Who removed something, where nothing tells: Kubernetes keeps no record of it.
const UNKNOWN: &str = "an unknown writer";

/// The first writer of an object.
pub(super) fn first_writer(object: &Manifest) -> Option<Writer> {
    entries(object.value()).min_by_key(|entry| time(entry)).and_then(|entry| writer(object, entry))
}

/// What somebody edited by hand in a Secret that a controller makes from `maker`: the values that another manager owns
/// than the controller. Empty where nobody knows which manager that is. Of a Secret that the maker only adds to, other keys
/// than its own are nobody's edit.
///
/// A controller writes all of its values whenever it writes. What another manager wrote before its last write and still
/// owns is equal: a Secret that the controller took over.
///
/// Without a maker nobody makes the Secret any more, and it is not derived.
pub fn edited_by_hand(secret: &Manifest, maker: Option<&Manifest>) -> Vec<HandEdit> {
    let Some(maker) = maker else { return Vec::new() };
    let own = (merges(maker) || is_patched(secret)).then(|| own_keys(maker));
    let is_its = |key: &String| own.as_ref().is_none_or(|own| own.contains(key.as_str()));
    let controllers = controllers(secret.value());
    // Where the maker does not become the owner, its name is the only sign.
    let is_made = controller_of(secret).is_some()
        || expected_secret(maker).is_some_and(|expected| Some(&expected.secret) == secret.key().as_ref());
    if controllers.is_empty() || !is_made {
        return Vec::new();
    }
    later_writes(secret.value(), &controllers)
        .filter_map(|(entry, keys)| {
            let keys = keys.map(str::to_owned).filter(is_its).collect();
            Some(HandEdit { writer: writer(secret, entry)?, keys, is_removal: false })
        })
        .filter(|edit| !edit.keys.is_empty())
        .collect()
}

/// May a Secret be one that a controller makes and another manager wrote to? It needs no maker, so it can be asked of
/// every Secret that a watch shows.
pub fn may_be_edited_by_hand(secret: &Value) -> bool {
    let controllers = controllers(secret);
    !controllers.is_empty() && later_writes(secret, &controllers).any(|(_, mut keys)| keys.next().is_some())
}

/// What other managers wrote after the last write of the controllers: the entries, and the keys of the values.
fn later_writes<'secret>(
    secret: &'secret Value,
    controllers: &[&str],
) -> impl Iterator<Item = (&'secret Value, impl Iterator<Item = &'secret str>)> {
    let is_controllers = |entry: &&Value| manager(entry).is_some_and(|name| controllers.contains(&name));
    let last_made = entries(secret).filter(is_controllers).filter_map(time).max();
    entries(secret)
        .filter(move |entry| manager(entry).is_some() && !is_controllers(entry))
        .filter(move |entry| time(entry).is_none_or(|at| last_made.is_none_or(|made| at >= made)))
        .filter_map(|entry| {
            let data =
                entry.pointer("/fieldsV1/f:data").or_else(|| entry.pointer("/fieldsV1/f:stringData"))?;
            let keys = data.as_object().into_iter().flatten();
            Some((entry, keys.filter_map(|(key, _)| key.strip_prefix("f:"))))
        })
}

/// The managers that set the owner reference or another sign of the controller, and those with the name of one.
fn controllers(secret: &Value) -> Vec<&str> {
    const SIGNS: [&str; 2] = [
        "/fieldsV1/f:metadata/f:ownerReferences",
        "/fieldsV1/f:metadata/f:annotations/f:cert-manager.io~1certificate-name",
    ];
    // External Secrets adds the name of the ExternalSecret.
    let has_name = |entry: &Value| {
        manager(entry).is_some_and(|name| name.starts_with("externalsecrets.external-secrets.io/"))
    };
    let is_one = |entry: &&Value| SIGNS.iter().any(|sign| entry.pointer(sign).is_some()) || has_name(entry);
    entries(secret).filter(is_one).filter_map(manager).collect()
}

/// Does the maker add to a Secret that others write, too?
fn merges(maker: &Manifest) -> bool {
    maker.value().pointer("/spec/target/creationPolicy").and_then(Value::as_str) == Some("Merge")
}

/// The keys that a maker names. Others may come from what it reads.
fn own_keys(maker: &Manifest) -> BTreeSet<&str> {
    let sealed = maker.value().pointer("/spec/encryptedData").and_then(Value::as_object);
    let fetched = maker.value().pointer("/spec/data").and_then(Value::as_array);
    let fetched = fetched.into_iter().flatten().filter_map(|entry| entry.get("secretKey")?.as_str());
    sealed.into_iter().flatten().map(|(key, _)| key.as_str()).chain(fetched).collect()
}

/// Does the Secret ask the Sealed Secrets controller to add to it?
fn is_patched(secret: &Manifest) -> bool {
    secret.annotation("sealedsecrets.bitnami.com/patch") == Some("true")
}

/// The keys of a `SealedSecret` that its Secret lacks. The controller writes all of them, and does not notice when
/// somebody removes one. Nothing is said until it has seen the newest `SealedSecret`.
pub fn removed_by_hand(secret: &Manifest, sealed: &Manifest) -> Option<HandEdit> {
    let value = sealed.value();
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64);
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    let has_written = conditions.into_iter().flatten().any(|condition| {
        let is = |field: &str, text: &str| condition.get(field).and_then(Value::as_str) == Some(text);
        is("type", "Synced") && is("status", "True")
    });
    if !has_written || number("/status/observedGeneration") != number("/metadata/generation") {
        return None;
    }
    let there = secret.value().get("data").and_then(Value::as_object);
    let has = |key: &str| there.is_some_and(|there| there.contains_key(key));
    let keys = value.pointer("/spec/encryptedData").and_then(Value::as_object).into_iter().flatten();
    let keys: Vec<String> = keys.map(|(key, _)| key.clone()).filter(|key| !has(key)).collect();
    // The witness noted the last write of all. It is that one, unless something else was written later.
    let note = Note::on(secret).filter(|note| !controllers(secret.value()).contains(&note.writer.as_str()));
    let writer = Writer {
        manager: note.as_ref().map_or_else(|| UNKNOWN.to_owned(), |note| note.writer.clone()),
        user: note.as_ref().and_then(|note| note.user.clone()),
        at: note.map(|note| note.at),
    };
    (!keys.is_empty()).then_some(HandEdit { writer, keys, is_removal: true })
}

/// The owner that makes a Secret: kind and name of the owner reference with `controller: true`.
pub fn controller_of(secret: &Manifest) -> Option<(&str, &str)> {
    let owners = secret.value().pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    Some((owner.get("kind")?.as_str()?, owner.get("name")?.as_str()?))
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

fn manager(entry: &Value) -> Option<&str> {
    entry.get("manager").and_then(Value::as_str)
}

fn time(entry: &Value) -> Option<Timestamp> {
    entry.get("time").and_then(Value::as_str)?.parse().ok()
}

/// The writer of an entry. The witness notes the last write of all, with its user.
fn writer(object: &Manifest, entry: &Value) -> Option<Writer> {
    let manager = manager(entry)?.to_owned();
    let note = Note::on(object).filter(|note| note.writer == manager);
    Some(Writer { user: note.and_then(|note| note.user), at: time(entry), manager })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(entries: &Value, owners: &Value) -> Manifest {
        let object = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "db", "namespace": "shop", "ownerReferences": owners, "managedFields": entries}});
        Manifest::new(object).unwrap()
    }

    fn entry(manager: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    }

    #[test]
    fn another_writer_than_the_controller_is_named_with_the_keys() {
        let made = json!({"f:data": {".": {}, "f:user": {}, "f:password": {}},
            "f:metadata": {"f:ownerReferences": {".": {}}}, "f:type": {}});
        let owners = json!([{"kind": "SealedSecret", "name": "db", "controller": true}]);
        let clean = json!([entry("controller", "2026-01-01T00:00:00Z", &made)]);
        let maker = sealed("db");
        assert_eq!(edited_by_hand(&secret(&clean, &owners), Some(&maker)), []);
        assert!(!may_be_edited_by_hand(secret(&clean, &owners).value()));

        let edit = json!({"f:data": {"f:password": {}, "f:extra": {}}});
        let label = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
        let edited = json!([
            entry("controller", "2026-01-01T00:00:00Z", &made),
            entry("kubectl-edit", "2026-02-03T04:05:06Z", &edit),
            entry("kubectl-label", "2026-02-03T04:05:07Z", &label),
        ]);
        let found = edited_by_hand(&secret(&edited, &owners), Some(&maker));
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(only.keys, ["extra", "password"]);
        assert!(may_be_edited_by_hand(secret(&edited, &owners).value()));
        assert_eq!(only.writer.to_string(), "kubectl-edit");
        assert_eq!(only.writer.at, "2026-02-03T04:05:06Z".parse().ok());
        // Nobody makes it any more, or nobody ever did.
        assert_eq!(edited_by_hand(&secret(&edited, &owners), None), []);
        assert_eq!(edited_by_hand(&secret(&edited, &json!([])), Some(&sealed("other"))), []);
        let unsigned = json!([entry("a", "2026-01-01T00:00:00Z", &edit)]);
        assert!(!may_be_edited_by_hand(secret(&unsigned, &owners).value()));
        assert_eq!(edited_by_hand(&secret(&unsigned, &owners), Some(&maker)), []);
    }

    #[test]
    fn a_secret_that_the_controller_took_over_was_edited_by_nobody() {
        let owners = json!([{"kind": "SealedSecret", "name": "db", "controller": true}]);
        let data = json!({"f:data": {"f:password": {}}});
        let taken = json!({"f:metadata": {"f:ownerReferences": {}}});
        let edits = |at: &str| {
            let entries = json!([
                entry("kubectl-create", at, &data),
                entry("controller", "2026-02-01T00:00:00Z", &taken)
            ]);
            edited_by_hand(&secret(&entries, &owners), Some(&sealed("db"))).len()
        };
        // The controller wrote the same values, so the API server leaves them to the first writer.
        assert_eq!(edits("2026-01-01T00:00:00Z"), 0);
        assert_eq!(edits("2026-02-01T00:00:01Z"), 1);
    }

    fn sealed(name: &str) -> Manifest {
        let object = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"encryptedData": {"password": "Ag", "user": "Ag"}}});
        Manifest::new(object).unwrap()
    }

    #[test]
    fn what_a_maker_does_not_own_is_watched_too() {
        let edit = json!({"f:data": {"f:password": {}, "f:extra": {}}});
        let entries = |manager: &str, made: &Value| {
            json!([
                entry(manager, "2026-01-01T00:00:00Z", made),
                entry("kubectl-edit", "2026-02-03T04:05:06Z", &edit)
            ])
        };
        let keys = |entries: &Value, maker: &Value| {
            let maker = Manifest::new(maker.clone()).unwrap();
            let found = edited_by_hand(&secret(entries, &json!([])), Some(&maker));
            found.into_iter().flat_map(|edit| edit.keys).collect::<Vec<_>>()
        };
        let certificate = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"secretName": "db"}});
        let issued = json!({"f:data": {"f:tls.crt": {}}, "f:metadata": {"f:annotations": {
            "f:cert-manager.io/certificate-name": {}}}});
        let by_manager = entries("cert-manager-certificates-issuing", &issued);
        assert_eq!(keys(&by_manager, &certificate), ["extra", "password"]);
        let external = |policy: &str| {
            json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
                "metadata": {"name": "db", "namespace": "shop"},
                "spec": {"target": {"creationPolicy": policy}, "data": [{"secretKey": "password"}]}})
        };
        let fetched =
            entries("externalsecrets.external-secrets.io/db", &json!({"f:data": {"f:password": {}}}));
        assert_eq!(keys(&fetched, &external("Orphan")), ["extra", "password"]);
        // It adds one key to a Secret of somebody else.
        assert_eq!(keys(&fetched, &external("Merge")), ["password"]);
        assert!(keys(&entries("somebody", &json!({})), &external("Orphan")).is_empty());
    }

    #[test]
    fn a_key_that_was_removed_is_named() {
        let secret = |keys: &Value| {
            let object = json!({"apiVersion": "v1", "kind": "Secret", "data": keys,
                "metadata": {"name": "db", "namespace": "shop"}});
            Manifest::new(object).unwrap()
        };
        let sealed = |observed: i64, synced: &str| {
            let object = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
                "metadata": {"name": "db", "namespace": "shop", "generation": 2},
                "spec": {"encryptedData": {"password": "Ag", "user": "Ag"}},
                "status": {"observedGeneration": observed, "conditions": [{"type": "Synced", "status": synced}]}});
            Manifest::new(object).unwrap()
        };
        let (whole, half) = (json!({"user": "x", "password": "x", "more": "x"}), json!({"user": "x"}));
        assert_eq!(removed_by_hand(&secret(&whole), &sealed(2, "True")), None);
        let removed = removed_by_hand(&secret(&half), &sealed(2, "True")).unwrap();
        assert_eq!((removed.keys.as_slice(), removed.is_removal), (&["password".to_owned()][..], true));
        assert_eq!((removed.writer.to_string().as_str(), removed.writer.at), ("an unknown writer", None));
        // The controller has not come to it yet, or cannot open it.
        assert_eq!(removed_by_hand(&secret(&half), &sealed(1, "True")), None);
        assert_eq!(removed_by_hand(&secret(&half), &sealed(2, "False")), None);
        let note = r#"2026-01-02T00:00:00Z "ann@example.com" k9s"#;
        let noted = secret(&half).with_annotation("plumb.dev/last-writer", note);
        let removed = removed_by_hand(&noted, &sealed(2, "True")).unwrap();
        assert_eq!(removed.writer.to_string(), "ann@example.com with k9s");
    }

    #[test]
    fn the_witness_knows_the_user() {
        let made = json!({"f:metadata": {"f:ownerReferences": {}}});
        let edit = json!({"f:data": {"f:password": {}}});
        let entries =
            json!([entry("a", "2026-01-01T00:00:00Z", &made), entry("k9s", "2026-01-02T00:00:00Z", &edit)]);
        let owners = json!([{"kind": "ExternalSecret", "name": "db", "controller": true}]);
        let note = r#"2026-01-02T00:00:00Z "ann@example.com" k9s"#;
        let secret = secret(&entries, &owners).with_annotation("plumb.dev/last-writer", note);
        let found = edited_by_hand(&secret, Some(&sealed("db")));
        assert_eq!(
            found.first().map(|edit| edit.writer.to_string()).as_deref(),
            Some("ann@example.com with k9s")
        );
        assert_eq!(first_writer(&secret).map(|writer| writer.manager).as_deref(), Some("a"));
    }
}
