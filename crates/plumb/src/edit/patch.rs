//! `--patch` and `--type`.

use plumb_core::yaml::{Limits, parse_documents};
use plumb_kube::Patch;
use serde_json::Value;

use crate::error::CommandError;
use crate::exit::ExitCode;

/// Reads the patch of the command line.
pub(crate) fn parse_patch(text: &str, kind: &str) -> Result<Patch, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read --patch", error).exit(ExitCode::Usage))?;
    let value = documents.into_iter().map(|document| document.value).next().unwrap_or_default();
    match (kind, &value) {
        ("json", Value::Array(_)) => Ok(Patch::Json(value)),
        ("json", _) => Err(CommandError::usage("a patch of type json must be a list of operations")
            .hint("use --type merge for a map of fields")),
        (_, Value::Object(_)) => Ok(Patch::Merge(value)),
        (_, _) => Err(CommandError::usage("a patch of type merge must be a map of fields")
            .hint("use --type json for a list of operations")),
    }
}
