//! What changed before an object became unhealthy: the last sync of its app, or the last edit of the object.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::health::in_words;
use crate::object::{FieldPath, Manifest};
use crate::tracking::is_our_manager;

/// A cluster tells times in whole seconds, and a status follows its cause with some delay: a change that was noted a
/// moment later may still be the cause.
const SLACK: SignedDuration = SignedDuration::from_secs(5);
/// Most fields that are named.
const MAX_FIELDS: usize = 5;
/// Fields of an edit are named down to this depth.
const MAX_DEPTH: usize = 6;

/// Something that changed an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: ChangeKind,
    /// The fields that it changed, as far as they are known.
    pub fields: Vec<FieldPath>,
}

/// What changed an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A sync of its app.
    Sync {
        /// Its number in the history of the app.
        id: i64,
        /// The number of the sync before it, if the history of the app still has that.
        previous: Option<i64>,
        /// What it deployed.
        commit: String,
        /// The author of the commit, with the address; empty if it is not known.
        author: String,
        /// Other objects that it changed, if it did not change this one.
        others: Vec<String>,
    },
    /// A write of somebody else.
    Edit {
        /// The field manager.
        manager: String,
    },
}

/// The last change before an illness began; `None` if none is known.
pub fn last_before(changes: &[Change], since: Timestamp) -> Option<&Change> {
    let limit = since.saturating_add(SLACK).unwrap_or(since);
    changes.iter().filter(|change| change.at <= limit).max_by_key(|change| change.at)
}

/// `began 40s after sync 12 of rollouts, commit abc1234, which changed /spec/template/spec/containers/0/args`
pub fn began(change: &Change, app: &str, since: Timestamp) -> String {
    let after = since.duration_since(change.at).max(SignedDuration::ZERO);
    let after =
        if after < SignedDuration::from_secs(60) { format!("{}s", after.as_secs()) } else { in_words(after) };
    let what = match &change.kind {
        ChangeKind::Sync { id, commit, author, .. } => {
            let short: String = commit.chars().take(7).collect();
            let name = author.split('<').next().unwrap_or_default().trim();
            let by = if name.is_empty() { String::new() } else { format!(" by {name}") };
            format!("sync {id} of {app}, commit {short}{by}")
        }
        ChangeKind::Edit { manager } => format!("an edit by {manager}"),
    };
    let fields: Vec<String> = change.fields.iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    let rest = if change.fields.len() > MAX_FIELDS { ", …" } else { "" };
    let changed = match (&change.kind, fields.is_empty()) {
        (_, false) => format!(", which changed {}{rest}", fields.join(", ")),
        (ChangeKind::Sync { others, .. }, true) if !others.is_empty() => {
            let named: Vec<&str> = others.iter().take(MAX_FIELDS).map(String::as_str).collect();
            let rest = if others.len() > MAX_FIELDS { ", …" } else { "" };
            format!(", which did not change it, but {}{rest}", named.join(", "))
        }
        (ChangeKind::Sync { .. } | ChangeKind::Edit { .. }, true) => String::new(),
    };
    format!("began {after} after {what}{changed}")
}

/// Where two versions of an object differ. A list of another length is named as a whole.
pub fn changed_fields(before: &Value, after: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    collect(before, after, &FieldPath::root(), &mut found);
    found
}

fn collect(before: &Value, after: &Value, at: &FieldPath, found: &mut Vec<FieldPath>) {
    let below =
        |name: &str| FieldPath::from_pointer(&format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")));
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
                let (old, new) = (one.get(name), other.get(name));
                collect(old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null), &below(name), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (old, new)) in one.iter().zip(other).enumerate() {
                collect(old, new, &below(&index.to_string()), found);
            }
        }
        (before, after) if before != after => found.push(at.clone()),
        _ => {}
    }
}

/// The writes of others that an object remembers: of its main resource, by neither plumb nor Argo CD.
pub fn edits(live: &Manifest) -> Vec<Change> {
    let entries = live.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let edit = |entry: &Value| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let manager = text("manager");
        if !text("subresource").is_empty() || is_our_manager(manager) {
            return None;
        }
        let mut fields = Vec::new();
        leaves(entry.get("fieldsV1")?, "", 0, &mut fields);
        // A status that is not a subresource is no edit of a user.
        let is_spec = |field: &FieldPath| !field.to_string().starts_with("/status");
        fields.retain(is_spec);
        let at = text("time").parse().ok().filter(|_| !fields.is_empty())?;
        Some(Change { at, kind: ChangeKind::Edit { manager: manager.to_owned() }, fields })
    };
    entries.into_iter().flatten().filter_map(edit).collect()
}

fn leaves(fields: &Value, at: &str, depth: usize, found: &mut Vec<FieldPath>) {
    let inner: Vec<(&str, &Value)> = fields
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, below)| Some((name.strip_prefix("f:")?, below)))
        .collect();
    if (inner.is_empty() || depth >= MAX_DEPTH) && !at.is_empty() {
        found.push(FieldPath::from_pointer(at));
        return;
    }
    for (name, below) in inner {
        let name = name.replace('~', "~0").replace('/', "~1");
        leaves(below, &format!("{at}/{name}"), depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn sync(id: i64, at: &str, fields: &[&str], others: &[&str]) -> Change {
        Change {
            at: time(at),
            kind: ChangeKind::Sync {
                previous: None,
                id,
                commit: "abc1234def".to_owned(),
                author: String::new(),
                others: others.iter().map(|other| (*other).to_owned()).collect(),
            },
            fields: fields.iter().map(|field| FieldPath::from_pointer(field)).collect(),
        }
    }

    #[test]
    fn the_last_change_before_it_is_named() {
        let edit = Change {
            at: time("2026-11-16T10:30:00Z"),
            kind: ChangeKind::Edit { manager: "kubectl-edit".to_owned() },
            fields: vec![FieldPath::from_pointer("/spec/replicas")],
        };
        let changes = [
            sync(11, "2026-11-16T09:00:00Z", &[], &[]),
            sync(12, "2026-11-16T10:00:00Z", &["/spec/template/spec/containers/0/args"], &[]),
            edit,
            sync(13, "2026-11-16T12:00:00Z", &[], &[]),
        ];
        let told = |since: &str| {
            let since = time(since);
            last_before(&changes, since).map(|change| began(change, "rollouts", since))
        };
        assert_eq!(
            told("2026-11-16T10:00:40Z").as_deref(),
            Some(
                "began 40s after sync 12 of rollouts, commit abc1234, which changed \
                 /spec/template/spec/containers/0/args"
            )
        );
        assert_eq!(
            told("2026-11-16T11:45:00Z").as_deref(),
            Some("began 1h 15m after an edit by kubectl-edit, which changed /spec/replicas")
        );
        // The status was noted a moment before the end of the sync that caused it.
        assert_eq!(
            told("2026-11-16T11:59:58Z").as_deref(),
            Some("began 0s after sync 13 of rollouts, commit abc1234")
        );
        assert_eq!(told("2026-11-16T08:00:00Z"), None);
    }

    #[test]
    fn the_author_of_the_commit_is_named() {
        let mut change = sync(3, "2026-11-16T10:00:00Z", &["/spec/replicas"], &[]);
        if let ChangeKind::Sync { author, .. } = &mut change.kind {
            *author = "Ann Example <ann@example.com>".to_owned();
        }
        assert_eq!(
            began(&change, "shop", time("2026-11-16T10:00:09Z")),
            "began 9s after sync 3 of shop, commit abc1234 by Ann Example, which changed /spec/replicas"
        );
    }

    #[test]
    fn a_sync_that_changed_other_objects_says_so() {
        let change = sync(3, "2026-11-16T10:00:00Z", &[], &["ConfigMap shop/settings"]);
        assert_eq!(
            began(&change, "shop", time("2026-11-16T10:02:00Z")),
            "began 2m after sync 3 of shop, commit abc1234, which did not change it, but ConfigMap shop/settings"
        );
    }

    #[test]
    fn changed_fields_are_the_smallest_that_differ() {
        let before =
            json!({"spec": {"a": 1, "list": [{"x": 1}, {"x": 2}], "more": [1], "gone": 1, "a/b": 1}});
        let after = json!({"spec": {"a": 1, "list": [{"x": 1}, {"x": 3}], "more": [1, 2], "new": {"y": 1}, "a/b": 2}});
        let fields: Vec<String> = changed_fields(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(fields, ["/spec/a~1b", "/spec/gone", "/spec/list/1/x", "/spec/more", "/spec/new"]);
        assert!(changed_fields(&before, &before).is_empty());
    }

    #[test]
    fn edits_of_controllers_and_of_syncs_are_left_out() {
        let entry = |manager: &str, subresource: &str, fields: Value| {
            json!({"manager": manager, "operation": "Update", "subresource": subresource,
                "time": "2026-11-16T10:00:00Z", "fieldsV1": fields})
        };
        let spec = json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:image": {}}}}}}});
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "managedFields": [
            entry("argocd-controller", "", spec.clone()),
            entry("kube-controller-manager", "status", json!({"f:status": {"f:replicas": {}}})),
            entry("operator", "", json!({"f:status": {"f:phase": {}}})),
            entry("kubectl-edit", "", spec),
        ]}});
        let found = edits(&Manifest::new(live).expect("an object"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, ChangeKind::Edit { manager: "kubectl-edit".to_owned() });
        let fields: Vec<String> = found[0].fields.iter().map(ToString::to_string).collect();
        assert_eq!(fields, ["/spec/replicas", "/spec/template/spec/containers"]);
    }
}
