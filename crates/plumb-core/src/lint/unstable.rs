//! Class G: the same files render differently each time.

use serde_json::Value;

use super::{LintApp, LintFinding, LintRule};
use crate::object::FieldPath;

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let Some(second) = app.second else { return Vec::new() };
    let mut findings = Vec::new();
    for object in app.objects() {
        let fields = match second.objects.get(&object.key) {
            Some(again) => differing(object.manifest.value(), again.manifest.value()),
            None => vec![FieldPath::root().field("metadata").field("name")],
        };
        if fields.is_empty() {
            continue;
        }
        let shown: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let message = format!("a second render of the same files differs: {}", shown.join(", "));
        let fix = "set the value in the values of the chart, instead of a random one or the time";
        let finding = LintFinding::new(LintRule::UnstableRender, app.name, message, fix);
        findings.push(finding.of(Some(object.key.clone()), object.origin.as_ref()).at(fields));
    }
    findings
}

/// The innermost places in which two values differ.
fn differing(one: &Value, other: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    walk(one, other, &FieldPath::root(), &mut found);
    found
}

fn walk(one: &Value, other: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                match other.get(name) {
                    Some(again) => walk(value, again, &path.field(name.as_str()), found),
                    None => found.push(path.field(name.as_str())),
                }
            }
            let added = other.keys().filter(|name| !one.contains_key(*name));
            found.extend(added.map(|name| path.field(name.as_str())));
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let both = one.iter().zip(other).enumerate();
            both.for_each(|(index, (one, other))| walk(one, other, &path.index(index), found));
        }
        (one, other) if one == other => {}
        _ => found.push(path.clone()),
    }
}
