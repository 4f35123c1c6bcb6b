//! Editing a value in the user's editor.

use std::process::Command;

use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;

use crate::config;
use crate::error::CommandError;

/// The value as the user saves it; `None` if it is unchanged.
pub(crate) fn edit(name: &str, value: &Value) -> Result<Option<Value>, CommandError> {
    let directory = tempfile::Builder::new()
        .prefix("plumb-edit-")
        .tempdir()
        .map_err(|error| CommandError::because("create a file to edit", error))?;
    let file = directory.path().join(format!("{name}.yaml"));
    let wrong = |error: std::io::Error| CommandError::because(format!("edit {}", file.display()), error);
    std::fs::write(&file, plumb_crd::yaml::to_yaml(value)).map_err(wrong)?;
    let words = config::editor();
    let (program, options) =
        words.split_first().ok_or_else(|| CommandError::new("no editor is configured"))?;
    let status = Command::new(program).args(options).arg(&file).status().map_err(|error| {
        CommandError::because(format!("start editor {program}"), error).hint("set EDITOR")
    })?;
    if !status.success() {
        return Err(CommandError::new(format!("the editor failed with {status}; nothing was changed")));
    }
    let text = std::fs::read_to_string(&file).map_err(wrong)?;
    let documents = parse_documents(&text, &Limits::default())
        .map_err(|error| CommandError::because("read the edited file", error))?;
    let edited = documents.into_iter().map(|document| document.value).find(|value| !value.is_null());
    let edited = edited.ok_or_else(|| CommandError::new("the file is empty; nothing was changed"))?;
    Ok((edited != *value).then_some(edited))
}
