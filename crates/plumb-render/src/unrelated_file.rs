//! YAML files in a directory of manifests that are no manifests, such as the `values.yaml` of a chart.

use serde_json::Value;

/// What every manifest has.
const FIELDS: [&str; 3] = ["apiVersion:", "kind:", "metadata:"];

/// True if a YAML file is passed over. `documents` are those that are not empty; `None` if the text is not YAML.
///
/// As in Argo CD, a file is passed over if its first document is no object and its text does not have all three fields of a
/// manifest. Unlike there, it is also refused if two of them begin a line: that is a manifest that lost a line, and the
/// object in it would be pruned.
pub(crate) fn is_unrelated(text: &[u8], documents: Option<&[&Value]>) -> bool {
    let first_is_object = match documents {
        None => false,
        Some([]) => true,
        Some([first, ..]) => has_kind(first),
    };
    !first_is_object && !looks_like_manifest(text)
}

fn has_kind(document: &Value) -> bool {
    document.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty())
}

fn looks_like_manifest(text: &[u8]) -> bool {
    let has_all = FIELDS.iter().all(|field| contains(text, field.as_bytes()));
    let begins_line =
        |field: &&&str| text.split(|byte| *byte == b'\n').any(|line| line.starts_with(field.as_bytes()));
    has_all || FIELDS.iter().filter(begins_line).count() > 1
}

/// True if the text has this word in it.
pub(crate) fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use plumb_core::yaml::{Limits, parse_documents_bytes};

    use super::*;

    #[test]
    fn a_file_without_the_fields_of_a_manifest_is_passed_over() {
        for (text, expected) in [
            ("replicas: 3\n", true),
            ("- a\n- b\n", true),
            ("text\n", true),
            // A list in values is no list of objects.
            ("items: [{name: a}]\n", true),
            ("image: {kind: x}\ntemplate:\n  metadata: {}\n", true),
            // No YAML, such as the template of a chart.
            ("{{ if }}\n  - x: [\n", true),
            ("{{ if }}\nmetadata: [\n", true),
            ("replicas: 3\n---\nreplicas: 4\n", true),
            // Nothing is in it.
            ("", false),
            ("# comment\n---\n", false),
            // It says that it is an object, or looks like one.
            ("kind: ConfigMap\n", false),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", false),
            ("{{ if }}\napiVersion: v1\nkind: ConfigMap\nmetadata: [\n", false),
            // All three fields are somewhere in the text.
            ("spec:\n  apiVersion: v1\n  kind: x\n  metadata: {}\n", false),
            ("replicas: 3\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", false),
            // A manifest that lost its kind.
            ("apiVersion: v1\nmetadata: {name: a}\n", false),
            // What follows an object must be one.
            ("apiVersion: v1\nkind: ConfigMap\n---\nreplicas: 3\n", false),
        ] {
            let documents = parse_documents_bytes(text.as_bytes(), &Limits::default()).ok();
            let documents: Option<Vec<&Value>> = documents.as_ref().map(|documents| {
                documents.iter().map(|document| &document.value).filter(|value| !value.is_null()).collect()
            });
            assert_eq!(is_unrelated(text.as_bytes(), documents.as_deref()), expected, "{text:?}");
        }
    }
}
