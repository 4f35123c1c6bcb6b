//! Which document of a file describes an object.

use serde_json::Value;

use crate::object::{FieldPath, Manifest, ObjectKey};
use crate::yaml::Document;

/// An object inside a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPlace {
    /// Number of the document, from 0.
    pub document: usize,
    /// The object inside it: the root, or an item of a `List`.
    pub path: FieldPath,
}

/// Finds an object in a file: by what the document says, and by its line where several say the same. `None` if it is
/// not there, or if it is not certain which one it is.
pub fn locate(documents: &[Document], key: &ObjectKey, line: usize) -> Option<DocumentPlace> {
    let mut found: Vec<(DocumentPlace, usize)> = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        let is_list =
            document.value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        let items = document.value.get("items").and_then(Value::as_array).filter(|_| is_list);
        let root = std::iter::once((FieldPath::root(), &document.value));
        let inside = items.into_iter().flatten().enumerate();
        let inside = inside.map(|(at, item)| (FieldPath::root().field("items").index(at), item));
        let matching = root.chain(inside).filter(|(_, value)| is_it(value, key));
        found.extend(matching.map(|(path, _)| (DocumentPlace { document: number, path }, document.line)));
    }
    if found.len() > 1 {
        found.retain(|(_, first_line)| *first_line == line);
    }
    match found.as_slice() {
        [(place, _)] => Some(place.clone()),
        _ => None,
    }
}

/// A document may leave its namespace to the app.
fn is_it(value: &Value, key: &ObjectKey) -> bool {
    let Ok(manifest) = Manifest::new(value.clone()) else { return false };
    let gvk = manifest.gvk();
    let is_there = manifest.namespace().is_none_or(|namespace| key.namespace.as_deref() == Some(namespace));
    gvk.group == key.group && gvk.kind == key.kind && manifest.name() == Some(key.name.as_str()) && is_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Limits, parse_documents};

    #[test]
    fn objects_are_found_in_their_files() {
        let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: b, namespace: other}\n---\nkind: List\napiVersion: v1\nitems:\n- kind: ConfigMap\n  apiVersion: v1\n  metadata: {name: c}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: d}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: d}\n";
        let documents = parse_documents(text, &Limits::default()).expect("readable");
        let find = |name: &str, line| {
            let key = ObjectKey::new("", "ConfigMap", Some("shop".to_owned()), name);
            locate(&documents, &key, line).map(|place| format!("{} {}", place.document, place.path))
        };
        assert_eq!(find("a", 99).as_deref(), Some("0 "));
        assert_eq!(find("b", 5), None, "it is in another namespace");
        assert_eq!(find("c", 9).as_deref(), Some("2 /items/0"));
        assert_eq!(find("d", documents[4].line).as_deref(), Some("4 "));
        assert_eq!(find("d", 1), None, "two have this name");
    }
}
