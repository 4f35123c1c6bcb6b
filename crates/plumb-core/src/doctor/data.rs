//! The diagnosis as data, for `-o json` and `-o yaml`.

use serde_json::{Value, json};

use super::{Diagnosis, Group};

/// Everything, with stable names. Fields without a value are left out.
pub fn data(diagnosis: &Diagnosis) -> Value {
    let ill = diagnosis.ill.iter().map(|illness| {
        compact(json!({
            "app": illness.app.to_string(),
            "group": illness.key.group, "kind": illness.key.kind,
            "namespace": illness.key.namespace_or_empty(), "name": illness.key.name,
            "health": illness.status,
            "since": illness.since.map(|since| since.to_string()),
            "stuck": illness.is_stuck,
            "causes": illness.causes,
        }))
    });
    let pauses = diagnosis.pauses.iter().map(|(app, pause)| {
        compact(json!({
            "app": app.to_string(),
            "kind": pause.key.kind, "namespace": pause.key.namespace_or_empty(), "name": pause.key.name,
            "until": pause.until.map(|until| until.to_string()),
            "reason": pause.reason,
        }))
    });
    json!({
        "summary": {
            "apps": diagnosis.n_apps,
            "unhealthy": diagnosis.ill.len(),
            "wrong": count(&diagnosis.wrong),
            "harmless": count(&diagnosis.harmless),
            "redWithoutDifference": diagnosis.unexplained.len(),
            "unjudged": diagnosis.unjudged.len(),
            "orphans": count(&diagnosis.orphans),
            "unstable": count(&diagnosis.unstable),
            "plainSecrets": diagnosis.plain_secrets.len(),
            "quiet": diagnosis.n_quiet,
        },
        "unhealthy": ill.collect::<Vec<_>>(),
        "wrong": findings(&diagnosis.wrong),
        "harmless": findings(&diagnosis.harmless),
        "redWithoutDifference": diagnosis.unexplained.iter().map(|(app, key)| {
            compact(json!({"app": app.to_string(), "group": key.group, "kind": key.kind,
                "namespace": key.namespace_or_empty(), "name": key.name}))
        }).collect::<Vec<_>>(),
        "unjudged": diagnosis.unjudged.iter().map(|app| {
            let objects: Vec<String> = app.red.iter().map(ToString::to_string).collect();
            compact(json!({"app": app.app.to_string(), "objects": objects, "problem": app.problem}))
        }).collect::<Vec<_>>(),
        "plainSecrets": diagnosis.plain_secrets.iter().map(|(app, key)| {
            compact(json!({"app": app.to_string(), "namespace": key.namespace_or_empty(), "name": key.name}))
        }).collect::<Vec<_>>(),
        "orphans": findings(&diagnosis.orphans),
        "unstable": findings(&diagnosis.unstable),
        "pauses": pauses.collect::<Vec<_>>(),
    })
}

fn count(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.places.len()).sum()
}

fn findings(groups: &[Group]) -> Vec<Value> {
    let places = groups.iter().flat_map(|group| &group.places);
    let finding = places.map(|place| {
        let finding = &place.finding;
        compact(json!({
            "app": place.app.to_string(),
            "class": finding.class.name(),
            "rule": finding.rule,
            "counts": finding.counts,
            "red": place.is_red,
            "argocd": place.in_argo_cd(),
            "group": finding.key.group, "kind": finding.key.kind,
            "namespace": finding.key.namespace_or_empty(), "name": finding.key.name,
            "fields": finding.fields.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "actor": finding.actor,
            "since": finding.since.map(|since| since.to_string()),
            "evidence": finding.evidence,
            "fix": finding.fix.text,
            "patch": finding.fix.patch,
        }))
    });
    finding.collect()
}

/// Without nulls, empty texts and empty lists.
fn compact(mut value: Value) -> Value {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| {
            !value.is_null() && value != "" && value.as_array().is_none_or(|list| !list.is_empty())
        });
    }
    value
}
