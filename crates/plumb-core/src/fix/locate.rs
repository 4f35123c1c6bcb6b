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
