//! What is printed.

use jiff::Timestamp;
use plumb_core::doctor::{Change, ChangeKind, Illness, began};
use plumb_core::health::in_words;
use plumb_core::text::one_line;
use serde_json::{Value, json};

use crate::context::Context;

/// An illness, and the last change before it began.
pub(super) struct Unmasked {
    pub(super) illness: Illness,
    pub(super) before: Option<Change>,
}

pub(super) fn text(context: &Context, unmasked: &[Unmasked], n_more: usize, now: Timestamp) -> String {
    if unmasked.is_empty() {
        return "nothing has been unhealthy for too long".to_owned();
    }
    let mut lines = Vec::new();
    for Unmasked { illness, before } in unmasked {
        let app = &illness.app;
        let name = if app.namespace == context.namespace() { app.name.clone() } else { app.to_string() };
        let status = if illness.status.is_empty() { "a child is unhealthy" } else { &illness.status };
        let since = illness.since.map(|since| format!(" for {}", in_words(now.duration_since(since))));
        let stuck = if illness.is_stuck { ", stuck" } else { "" };
        let since = since.unwrap_or_default();
        lines.push(one_line(&format!("{status}{since}{stuck}: {name}: {}", illness.key)).into_owned());
        lines.extend(illness.causes.iter().map(|cause| format!("    {}", one_line(cause))));
        if let (Some(change), Some(since)) = (before, illness.since) {
            lines.push(format!("    {}", one_line(&began(change, &name, since))));
        }
        lines.push(format!("  → {}", one_line(&command(&name, before.as_ref()))));
    }
    if n_more > 0 {
        lines.push(format!("… and {n_more} more; --limit shows them"));
    }
    lines.join("\n")
}

fn command(app: &str, before: Option<&Change>) -> String {
    match before.map(|change| &change.kind) {
        Some(ChangeKind::Sync { previous: Some(previous), .. }) => {
            format!("plumb app history {app}; plumb app rollback {app} {previous} goes back to before it")
        }
        Some(ChangeKind::Edit { .. }) => format!("plumb app sync {app} brings back what Git asks for"),
        Some(ChangeKind::Sync { .. }) | None => format!("plumb app get {app}"),
    }
}

pub(super) fn data(unmasked: &[Unmasked]) -> Value {
    let entries = unmasked.iter().map(|Unmasked { illness, before }| {
        let before = before.as_ref().map(|change| {
            let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
            let at = change.at.to_string();
            match &change.kind {
                ChangeKind::Sync { id, commit, author, others, .. } => {
                    json!({"kind": "sync", "id": id, "commit": commit, "author": author, "at": at, "fields": fields, "otherObjects": others})
                }
                ChangeKind::Edit { manager } => {
                    json!({"kind": "edit", "manager": manager, "at": at, "fields": fields})
                }
            }
        });
        json!({
            "app": illness.app.to_string(),
            "group": illness.key.group, "kind": illness.key.kind,
            "namespace": illness.key.namespace_or_empty(), "name": illness.key.name,
            "health": illness.status,
            "since": illness.since.map(|since| since.to_string()),
            "stuck": illness.is_stuck,
            "causes": illness.causes,
            "before": before,
        })
    });
    Value::Array(entries.collect())
}
