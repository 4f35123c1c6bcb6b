//! What the renderer sends to the worker process.

use serde::{Deserialize, Serialize};

/// The content of the request file.
#[derive(Serialize, Deserialize)]
pub(super) struct WorkerRequest {
    /// Directory with the files of the source.
    pub(super) root: String,
    /// Directories to search for imports, besides the directory of the importing file; the last one first.
    pub(super) search: Vec<String>,
    pub(super) ext_vars: Vec<Variable>,
    pub(super) tlas: Vec<Variable>,
    /// The files to evaluate.
    pub(super) files: Vec<String>,
}

/// An external variable or a top-level argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
    /// True if the value is a Jsonnet expression, not a string.
    pub(super) code: bool,
}
