//! Who wrote a Secret, from its `managedFields` and the note of the witness. Values are not read.

use jiff::Timestamp;
use serde_json::Value;

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
    /// Which keys; empty if only other fields of the Secret are concerned.
    pub keys: Vec<String>,
}

/// The first writer of an object.
pub(super) fn first_writer(object: &Manifest) -> Option<Writer> {
    entries(object).min_by_key(|entry| time(entry)).and_then(|entry| writer(object, entry))
}

/// What somebody edited by hand in a Secret that a controller makes: the values that another manager owns than the
/// one that set the owner reference. Empty for a Secret without a controller.
///
/// `owner_exists` is false if the owner is gone: then nobody makes the Secret any more, and it is not derived.
pub fn edited_by_hand(secret: &Manifest, owner_exists: bool) -> Vec<HandEdit> {
    if !owner_exists || controller_of(secret).is_none() {
        return Vec::new();
    }
    let sets_owner = |entry: &&Value| entry.pointer("/fieldsV1/f:metadata/f:ownerReferences").is_some();
    // The one that set the owner reference is the controller; a second one is another controller at work.
    let controllers: Vec<&str> = entries(secret).filter(sets_owner).filter_map(manager).collect();
    if controllers.is_empty() {
        return Vec::new();
    }
    let edits =
        entries(secret).filter(|entry| manager(entry).is_some_and(|name| !controllers.contains(&name)));
    edits
        .filter_map(|entry| {
            let data =
                entry.pointer("/fieldsV1/f:data").or_else(|| entry.pointer("/fieldsV1/f:stringData"))?;
            let keys = data.as_object().into_iter().flatten();
            let keys = keys.filter_map(|(key, _)| key.strip_prefix("f:").map(str::to_owned)).collect();
            Some(HandEdit { writer: writer(secret, entry)?, keys })
        })
        .filter(|edit| !edit.keys.is_empty())
        .collect()
}

/// The owner that makes a Secret: kind and name of the owner reference with `controller: true`.
pub fn controller_of(secret: &Manifest) -> Option<(&str, &str)> {
    let owners = secret.value().pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    Some((owner.get("kind")?.as_str()?, owner.get("name")?.as_str()?))
}

fn entries(object: &Manifest) -> impl Iterator<Item = &Value> {
    object.value().pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
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
        assert_eq!(edited_by_hand(&secret(&clean, &owners), true), []);

        let edit = json!({"f:data": {"f:password": {}, "f:extra": {}}});
        let label = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
        let edited = json!([
            entry("controller", "2026-01-01T00:00:00Z", &made),
            entry("kubectl-edit", "2026-02-03T04:05:06Z", &edit),
            entry("kubectl-label", "2026-02-03T04:05:07Z", &label),
        ]);
        let found = edited_by_hand(&secret(&edited, &owners), true);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(only.keys, ["extra", "password"]);
        assert_eq!(only.writer.to_string(), "kubectl-edit");
        assert_eq!(only.writer.at, "2026-02-03T04:05:06Z".parse().ok());
        // Nobody makes it any more, or nobody ever did.
        assert_eq!(edited_by_hand(&secret(&edited, &owners), false), []);
        assert_eq!(edited_by_hand(&secret(&edited, &json!([])), true), []);
        let plain = json!([{"kind": "SealedSecret", "name": "db"}]);
        assert_eq!(edited_by_hand(&secret(&edited, &plain), true), []);
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
        let found = edited_by_hand(&secret, true);
        assert_eq!(
            found.first().map(|edit| edit.writer.to_string()).as_deref(),
            Some("ann@example.com with k9s")
        );
        assert_eq!(first_writer(&secret).map(|writer| writer.manager).as_deref(), Some("a"));
    }
}
