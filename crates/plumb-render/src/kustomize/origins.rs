//! Finds the file of the repository that an object of an overlay comes from.
//!
//! Kustomize can report it itself (`originAnnotations`), but it does so with an annotation that exists while patches and
//! replacements run: a patch that adds to existing annotations would work with it and fail without it. So the file is
//! found here, by kind and name, after removing the prefixes and suffixes that the overlays declare. An ambiguous match
//! counts as no match.

use std::collections::{BTreeSet, HashMap};

use plumb_core::desired::Origin;
use plumb_core::source::{RepoPath, SourceFiles, read_following};
use plumb_core::yaml;
use serde_json::Value;

use crate::limits::Limits;

/// With more prefixes and suffixes than this, matches are too uncertain.
const MAX_AFFIXES: usize = 50;

/// What the overlays declare about the files of their objects.
#[derive(Default)]
pub(super) struct OriginHints {
    /// The files of their `resources`.
    pub(super) files: BTreeSet<RepoPath>,
    pub(super) prefixes: BTreeSet<String>,
    pub(super) suffixes: BTreeSet<String>,
}

/// The documents that an overlay's objects can come from.
pub(super) struct Documents<'a> {
    hints: &'a OriginHints,
    /// By API group, kind and name.
    by_name: HashMap<(String, String, String), Vec<Document>>,
}

struct Document {
    file: String,
    line: usize,
    /// `None` for an item of a list.
    value: Option<Value>,
    namespace: Option<String>,
}

impl<'a> Documents<'a> {
    /// Reads the files. Unreadable files are skipped.
    pub(super) fn read(hints: &'a OriginHints, files: &dyn SourceFiles, limits: &Limits) -> Self {
        let mut documents = Self { hints, by_name: HashMap::new() };
        if hints.prefixes.len() + hints.suffixes.len() > MAX_AFFIXES {
            return documents;
        }
        let mut left = limits.yaml;
        for file in &hints.files {
            let text = read_following(files, file).unwrap_or_default();
            for found in yaml::parse_documents_bytes(&text, &left).unwrap_or_default() {
                left.max_memory = left.max_memory.saturating_sub(found.memory);
                match found.value.get("items").and_then(Value::as_array) {
                    Some(items) => {
                        for item in items {
                            documents.insert(file, found.line, item, None);
                        }
                    }
                    None => documents.insert(file, found.line, &found.value, Some(&found.value)),
                }
            }
        }
        documents
    }

    fn insert(&mut self, file: &RepoPath, line: usize, object: &Value, value: Option<&Value>) {
        let Some((group, kind, name)) = identity(object) else { return };
        let document = Document {
            file: file.as_str().to_owned(),
            line,
            value: value.cloned(),
            namespace: object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned),
        };
        self.by_name.entry((group, kind, name)).or_default().push(document);
    }

    /// The file and line of the document that an object comes from, if it is unambiguous.
    pub(super) fn origin_of(&self, object: &Value, source: usize) -> Option<Origin> {
        let (group, kind, name) = identity(object)?;
        let starts = ends_of_chains(&name, &self.hints.prefixes);
        let reversed: String = name.chars().rev().collect();
        let suffixes = self.hints.suffixes.iter().map(|suffix| suffix.chars().rev().collect()).collect();
        let ends = ends_of_chains(&reversed, &suffixes).into_iter().map(|length| name.len() - length);
        let spans = ends.flat_map(|end| starts.iter().map(move |start| (*start, end)));
        let found: Vec<&Document> = spans
            .filter_map(|(start, end)| name.get(start..end))
            .collect::<BTreeSet<&str>>()
            .into_iter()
            .filter_map(|original| self.by_name.get(&(group.clone(), kind.clone(), original.to_owned())))
            .flatten()
            .collect();
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let document = match found.as_slice() {
            [one] => one,
            // The same name in two namespaces.
            several => {
                let mut here = several.iter().filter(|document| document.namespace.as_deref() == namespace);
                here.next().filter(|_| here.next().is_none())?
            }
        };
        let verbatim = document.value.as_ref() == Some(object);
        Some(Origin { source, file: document.file.clone(), line: document.line, verbatim })
    }
}

fn identity(object: &Value) -> Option<(String, String, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion")?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Some((group.to_owned(), text("/kind")?.to_owned(), text("/metadata/name")?.to_owned()))
}

/// The lengths of all prefixes of a text that are concatenations of these parts, 0 included.
fn ends_of_chains(text: &str, parts: &BTreeSet<String>) -> Vec<usize> {
    let mut ends = BTreeSet::from([0]);
    let mut waiting = vec![0];
    while let Some(end) = waiting.pop() {
        let rest = text.get(end..).unwrap_or_default();
        for part in parts.iter().filter(|part| !part.is_empty() && rest.starts_with(part.as_str())) {
            if ends.insert(end + part.len()) {
                waiting.push(end + part.len());
            }
        }
    }
    ends.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_chains_are_found() {
        let parts: BTreeSet<String> = ["a", "aa", "b-"].map(str::to_owned).into();
        assert_eq!(ends_of_chains("aab-x", &parts), [0, 1, 2, 4]);
        assert_eq!(ends_of_chains("x", &parts), [0]);
        assert_eq!(ends_of_chains(&"a".repeat(200), &parts).len(), 201);
    }
}
