//! YAML as Kubernetes reads it.
//!
//! kubectl, Helm and Argo CD read YAML through `sigs.k8s.io/yaml`, that is Go's YAML 1.1 with a detour over
//! JSON: `0644` is 420, `on` is true, `1.0` is the integer 1, a date is text. Reading a manifest any other way
//! shows differences that are none, or hides some. No parser of YAML 1.2 will do: the ones at hand refuse files
//! that kubectl takes (tabs before a JSON value, `[-]`, a quoted text that goes on in the first column) and read
//! others differently. So the grammar is here too, and everything is checked against the Go library's own
//! answers (`testdata/yaml`, recorded by `tools/yaml-oracle`).
//!
//! The way of a text: `text` takes the stream apart, `scanner` makes tokens, `tree` makes a tree, `read` turns
//! it into a value by way of `scalar` and `number`.
//!
//! On purpose stricter than Go: a key that is there twice in one map is refused with both lines, where Go
//! keeps the last one in silence ([`parse_first`] is as Go). On purpose more careful: size, nesting and expansion have limits.
//!
//! Input is hostile: nothing here panics, and the cost is bounded by the [`Limits`].

mod cursor;
mod edit;
mod error;
mod line;
mod memory;
mod number;
mod read;
mod scalar;
mod scan_scalar;
mod scan_tag;
mod scanner;
mod span;
mod text;
mod timestamp;
mod token;
mod tree;

#[cfg(test)]
mod tests;

pub use edit::{EditRefusal, Edited, Operation, PathProblem, edit_document};
pub use error::{YamlError, YamlProblem};
pub use line::line_of;
pub use read::{Document, Limits, parse_documents, parse_documents_bytes, parse_first};
