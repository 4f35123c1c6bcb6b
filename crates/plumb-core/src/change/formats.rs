//! The change as text, Markdown and data.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{FieldChange, ObjectChange, Outcome, RepositoryChange, Summary};
use crate::report::row;

/// Longer values are cut.
const MOST_CHARS: usize = 100;

/// One line per object, and one per field. `subject` is what makes the change.
pub fn text(change: &RepositoryChange, subject: &str) -> String {
    let mut text = String::new();
    let mut app = None;
    for object in &change.objects {
        if app != Some(&object.app) {
            app = Some(&object.app);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}{}", object.app, state(change, &object.app));
        }
        let _ = writeln!(text, "  {}", line(object));
        for field in fields(object) {
            let _ = writeln!(text, "      {}", field_line(object, field));
        }
    }
    for name in change.apps_removed.iter().filter(|name| !has_objects(change, name)) {
        let _ = writeln!(text, "{name} (app removed)");
    }
    for name in &change.unknown {
        let _ =
            writeln!(text, "{name}: cannot be rendered in one of the states, its objects are not compared");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&Summary::of(change).sentence(subject));
    text
}

fn has_objects(change: &RepositoryChange, app: &str) -> bool {
    change.objects.iter().any(|object| object.app == app)
}

fn state(change: &RepositoryChange, app: &String) -> &'static str {
    match (change.apps_added.contains(app), change.apps_removed.contains(app)) {
        (true, _) => " (app added)",
        (_, true) => " (app removed)",
        _ => "",
    }
}

fn line(object: &ObjectChange) -> String {
    let sign = match &object.outcome {
        Outcome::Added => "+",
        Outcome::Deleted { .. } | Outcome::Left { .. } => "-",
        Outcome::Moved { .. } => ">",
        Outcome::Changed { .. } => "~",
    };
    let note = note(object);
    let is_plain = matches!(object.outcome, Outcome::Added | Outcome::Changed { .. }) && note.is_empty();
    let what = match (&object.outcome, note.is_empty()) {
        (Outcome::Deleted { .. }, true) => "deleted".to_owned(),
        (Outcome::Deleted { .. }, false) => format!("deleted, {note}"),
        _ => note,
    };
    if is_plain { format!("{sign} {}", object.key) } else { format!("{sign} {}  ({what})", object.key) }
}

/// What else happens to it.
fn note(object: &ObjectChange) -> String {
    match &object.outcome {
        Outcome::Added | Outcome::Deleted { data: None } => String::new(),
        Outcome::Deleted { data: Some(data) } => format!("with {data}"),
        Outcome::Left { why } => format!("stays in the cluster: {why}"),
        Outcome::Moved { from, .. } => format!("from {from}"),
        Outcome::Changed { restarts, is_recreated, .. } => {
            let notes = [(*restarts, "restarts"), (*is_recreated, "is deleted and created again")];
            let notes: Vec<&str> = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
            notes.join(", ")
        }
    }
}

fn fields(object: &ObjectChange) -> &[FieldChange] {
    match &object.outcome {
        Outcome::Changed { fields, .. } | Outcome::Moved { fields, .. } => fields,
        Outcome::Added | Outcome::Deleted { .. } | Outcome::Left { .. } => &[],
    }
}

fn is_refused(object: &ObjectChange, field: &FieldChange) -> bool {
    matches!(&object.outcome, Outcome::Changed { refused, .. } if refused.contains(&field.path))
}

fn field_line(object: &ObjectChange, field: &FieldChange) -> String {
    let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), shown);
    let refused = if is_refused(object, field) { "  (immutable: the API server refuses it)" } else { "" };
    format!("{}: {} -> {}{refused}", field.path, value(&field.from), value(&field.to))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A sentence and a table, for a merge request.
pub fn markdown(change: &RepositoryChange, subject: &str) -> String {
    let sentence = Summary::of(change).sentence(subject);
    let mut text = format!("**{}**\n", crate::report::escaped(&sentence));
    if !change.objects.is_empty() {
        text.push_str("\n| app | object | change | fields |\n|---|---|---|---|\n");
    }
    for object in &change.objects {
        let what = match &object.outcome {
            Outcome::Added => "added",
            Outcome::Deleted { .. } => "deleted",
            Outcome::Left { .. } => "removed from Git",
            Outcome::Moved { .. } => "moved",
            Outcome::Changed { .. } => "changed",
        };
        let note = note(object);
        let note = if note.is_empty() { note } else { format!(", {note}") };
        let fields: Vec<String> = fields(object)
            .iter()
            .map(|field| {
                let refused = if is_refused(object, field) { " (immutable)" } else { "" };
                format!("{}{refused}", field.path)
            })
            .collect();
        let cells = [object.app.clone(), object.key.to_string(), format!("{what}{note}"), fields.join(", ")];
        text.push_str(&row(&cells));
    }
    for name in &change.unknown {
        let name = crate::report::escaped(name);
        let _ =
            writeln!(text, "\n{name} cannot be rendered in one of the states: its objects are not compared.");
    }
    text
}

/// Everything, with stable names.
pub fn data(change: &RepositoryChange) -> Value {
    let summary = Summary::of(change);
    json!({
        "summary": {
            "added": summary.n_added, "changed": summary.n_changed, "deleted": summary.n_deleted,
            "deletedWithData": summary.n_with_data, "left": summary.n_left, "moved": summary.n_moved,
            "restarts": summary.restarts, "refusedFields": summary.n_refused, "recreated": summary.n_recreated,
        },
        "appsAdded": change.apps_added,
        "appsRemoved": change.apps_removed,
        "notCompared": change.unknown,
        "objects": change.objects.iter().map(object_data).collect::<Vec<_>>(),
    })
}

fn object_data(object: &ObjectChange) -> Value {
    let fields: Vec<Value> = fields(object)
        .iter()
        .map(|field| {
            json!({"path": field.path.to_string(), "from": field.from, "to": field.to,
                "refused": is_refused(object, field)})
        })
        .collect();
    let mut data = json!({
        "app": object.app,
        "group": object.key.group, "kind": object.key.kind,
        "namespace": object.key.namespace_or_empty(), "name": object.key.name,
        "file": object.origin.as_ref().map(|origin| origin.file.clone()),
        "fields": fields,
    });
    let more = match &object.outcome {
        Outcome::Added => json!({"change": "added"}),
        Outcome::Deleted { data } => json!({"change": "deleted", "lost": data}),
        Outcome::Left { why } => json!({"change": "left", "why": why}),
        Outcome::Moved { from, .. } => json!({"change": "moved", "from": from}),
        Outcome::Changed { restarts, is_recreated, .. } => {
            json!({"change": "changed", "restarts": restarts, "recreated": is_recreated})
        }
    };
    if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
        data.extend(more);
    }
    data
}
