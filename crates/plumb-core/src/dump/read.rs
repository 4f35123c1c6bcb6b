//! Reading the file.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::{Manifest, NotAnObject, ObjectKey};
use crate::yaml::{Limits, YamlError, parse_documents_bytes};

/// The objects of dumps, by key. Of an object that is in several dumps, the last one counts.
pub type LiveDump = BTreeMap<ObjectKey, Manifest>;

/// A dump is larger than a manifest: all objects of a cluster, with their managed fields.
const LIMITS: Limits =
    Limits { max_bytes: 512 << 20, max_depth: 200, max_alias_bytes: 16 << 20, max_memory: 8 << 30 };

/// Why a dump cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DumpError {
    /// It is neither YAML nor JSON; a JSON file that is cut off ends here.
    #[error("it is not complete YAML or JSON")]
    Syntax(#[from] YamlError),
    /// The end is missing: `kubectl` prints the kind of a list behind its items.
    #[error("the list at line {line} has no kind: the end of the file is missing")]
    CutOff {
        /// Line of the list.
        line: usize,
    },
    /// Something in it is not an object.
    #[error("object {number} of the document at line {line} is not an object of a cluster: {source}")]
    NotAnObject {
        /// Which one, from 1.
        number: usize,
        /// Line of its document.
        line: usize,
        /// Why.
        source: NotAnObject,
    },
    /// An object has no name.
    #[error("object {number} of the document at line {line} has no name: the end of the file may be missing")]
    NoName {
        /// Which one, from 1.
        number: usize,
        /// Line of its document.
        line: usize,
    },
    /// There is nothing in it.
    #[error("it has no objects")]
    Empty,
}

/// Reads a dump and adds its objects. Documents are objects or lists of objects. Nothing is added if an object cannot
/// be read.
pub fn read_dump(bytes: &[u8], into: &mut LiveDump) -> Result<(), DumpError> {
    let mut found = Vec::new();
    for document in parse_documents_bytes(bytes, &LIMITS)? {
        let line = document.line;
        let Value::Object(mut map) = document.value else {
            found.push(manifest(document.value, 1, line)?);
            continue;
        };
        match map.remove("items") {
            Some(Value::Array(_)) if !map.contains_key("kind") => return Err(DumpError::CutOff { line }),
            Some(Value::Array(items)) => {
                for (at, item) in items.into_iter().enumerate() {
                    found.push(manifest(item, at + 1, line)?);
                }
            }
            Some(other) => {
                map.insert("items".to_owned(), other);
                found.push(manifest(Value::Object(map), 1, line)?);
            }
            None => found.push(manifest(Value::Object(map), 1, line)?),
        }
    }
    if found.is_empty() {
        return Err(DumpError::Empty);
    }
    into.extend(found);
    Ok(())
}

fn manifest(value: Value, number: usize, line: usize) -> Result<(ObjectKey, Manifest), DumpError> {
    let manifest = Manifest::new(value).map_err(|source| DumpError::NotAnObject { number, line, source })?;
    let key = manifest.key().ok_or(DumpError::NoName { number, line })?;
    Ok((key, manifest))
}
