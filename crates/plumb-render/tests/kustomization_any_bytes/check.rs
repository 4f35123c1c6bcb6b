//! What must hold for any kustomization file. Shared with the fuzz target.

use std::sync::Arc;

use plumb_core::source::RepoPath;
use plumb_core::yaml::{Limits, parse_documents_bytes};
use plumb_render::{MemoryFiles, inspect_overlay};
use serde_json::{Map, Value};

/// Inspecting never panics. Kustomize reads keys in any case, so the case of the keys does not change the answer.
/// Returns true if the file is accepted.
pub(crate) fn any_bytes(bytes: &[u8]) -> bool {
    let is_accepted = accepts(bytes);
    let Ok(documents) = parse_documents_bytes(bytes, &Limits::default()) else { return is_accepted };
    let Some(value) = documents.into_iter().next().map(|document| document.value) else { return is_accepted };
    for other in [Some(value.clone()), in_upper_case(&value)].into_iter().flatten() {
        // JSON may contain what YAML forbids in a text: then there is nothing to compare.
        let text = other.to_string();
        let again = parse_documents_bytes(text.as_bytes(), &Limits::default()).unwrap_or_default();
        if again.first().is_some_and(|again| again.value == other) {
            assert_eq!(accepts(text.as_bytes()), is_accepted, "{value} and {other}");
        }
    }
    is_accepted
}

fn accepts(kustomization: &[u8]) -> bool {
    let file = |steps: [&str; 2], content: &[u8]| {
        (RepoPath::root().child(steps[0]).child(steps[1]), content.to_vec())
    };
    let files = MemoryFiles::new([
        file(["app", "kustomization.yaml"], kustomization),
        file(["app", "a.yaml"], b"kind: ConfigMap"),
        file(["app", "plugin.yaml"], b"kind: PatchTransformer\nPath: /etc/passwd"),
        file(["base", "kustomization.yaml"], b"resources: [x.yaml]"),
    ]);
    inspect_overlay(Arc::new(files), &RepoPath::root().child("app")).is_ok()
}

/// The same with all keys in upper case; `None` if two keys become one.
fn in_upper_case(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Array(items) => Value::Array(items.iter().map(in_upper_case).collect::<Option<_>>()?),
        Value::Object(fields) => {
            let mut shouted = Map::new();
            for (key, value) in fields {
                if shouted.insert(key.to_ascii_uppercase(), in_upper_case(value)?).is_some() {
                    return None;
                }
            }
            Value::Object(shouted)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    })
}
