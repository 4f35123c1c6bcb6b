//! Editing a value in the user's editor.

use std::fs::{OpenOptions, Permissions};
use std::io::{Result as IoResult, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;
use tempfile::TempDir;

use crate::config;
use crate::error::CommandError;

/// The value as the user saves it; `None` if it is unchanged.
pub(crate) fn edit(name: &str, value: &Value) -> Result<Option<Value>, CommandError> {
    let directory =
        private_directory().map_err(|error| CommandError::because("create a file to edit", error))?;
    let file = directory.path().join(format!("{name}.yaml"));
    let wrong = |error: std::io::Error| CommandError::because(format!("edit {}", file.display()), error);
    write_private(&file, &plumb_crd::yaml::to_yaml(value)).map_err(wrong)?;
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

/// A directory for the owner alone: values of Helm and addresses with passwords are in the file while the editor is open.
fn private_directory() -> IoResult<TempDir> {
    tempfile::Builder::new().prefix("plumb-edit-").permissions(Permissions::from_mode(0o700)).tempdir()
}

fn write_private(file: &Path, text: &str) -> IoResult<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_can_read_what_is_edited() {
        let directory = private_directory().unwrap();
        let file = directory.path().join("shop.yaml");
        write_private(&file, "helm: values").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(directory.path()), mode(&file)), (0o700, 0o600));
    }
}
