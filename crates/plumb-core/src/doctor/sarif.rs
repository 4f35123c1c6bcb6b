//! The diagnosis as SARIF 2.1.0, which code hosts show beside the code.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Diagnosis, Group, Unjudged};
use crate::object::ObjectKey;

/// One result per finding and illness. `version` is plumb's.
pub fn sarif(diagnosis: &Diagnosis, version: &str) -> Value {
    let blocks = [
        (&diagnosis.wrong, "error"),
        (&diagnosis.harmless, "note"),
        (&diagnosis.orphans, "warning"),
        (&diagnosis.unstable, "note"),
    ];
    let mut results: Vec<Value> = diagnosis
        .ill
        .iter()
        .map(|illness| {
            let cause = illness.causes.last().map(|cause| format!(": {cause}")).unwrap_or_default();
            let text = format!("{} is {}{cause}", illness.key, illness.status);
            result("Unhealthy", "error", &text, (&illness.app.to_string(), &illness.key.to_string()))
        })
        .collect();
    results.extend(diagnosis.unjudged.iter().flat_map(|Unjudged { app, red, problem }| {
        let out_of_sync = |key: &ObjectKey| {
            let text = format!("{key} is OutOfSync, and plumb did not judge it");
            result("OutOfSync", "warning", &text, (&app.to_string(), &key.to_string()))
        };
        let problem = problem.iter().map(|problem| {
            let text = format!("the app {app} could not be judged: {problem}");
            result("NotJudged", "warning", &text, (&app.to_string(), &app.to_string()))
        });
        problem.chain(red.iter().map(out_of_sync)).collect::<Vec<_>>()
    }));
    results.extend(diagnosis.plain_secrets.iter().map(|(app, key)| {
        let text = format!("Git has the values of {key}");
        result("PlainSecret", "warning", &text, (&app.to_string(), &key.to_string()))
    }));
    results.extend(blocks.iter().flat_map(|(groups, level)| of_groups(groups, level)));
    let used: BTreeSet<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    let rules: Vec<Value> = used.into_iter().map(|id| json!({"id": id})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "plumb", "version": version, "rules": rules}},
            "results": results,
        }],
    })
}

fn of_groups(groups: &[Group], level: &str) -> Vec<Value> {
    let places = groups.iter().flat_map(|group| &group.places);
    let finding = places.map(|place| {
        let finding = &place.finding;
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
        let why = finding.evidence.first().map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("{}{fields}{why}. {}", finding.key, finding.fix.text);
        result(finding.class.name(), level, &text, (&place.app.to_string(), &finding.key.to_string()))
    });
    finding.collect()
}

fn result(rule: &str, level: &str, text: &str, (app, object): (&str, &str)) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"logicalLocations": [{"name": object, "fullyQualifiedName": format!("{app}: {object}"), "kind": "resource"}]}],
        // The same finding has the same fingerprint in every run.
        "partialFingerprints": {"plumb/v1": format!("{rule} {app} {object}")},
    })
}
