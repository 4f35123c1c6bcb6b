//! Files and stdin that a command reads.

use std::io::{BufRead as _, Read as _};
use std::path::Path;

use crate::error::CommandError;

/// The content of a file; `-` is stdin.
pub(crate) fn read_text(file: &str) -> Result<String, CommandError> {
    if file.starts_with("https://") || file.starts_with("http://") {
        return Err(CommandError::usage(format!("cannot read {file}: URLs are not supported"))
            .hint(format!("`curl -sSf {file} | plumb app create -f -`")));
    }
    if file == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| CommandError::because("read stdin", error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| CommandError::because(format!("read {file}"), error))
}

/// The content of a file.
pub(crate) fn read_path(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path)
        .map_err(|error| CommandError::because(format!("read {}", path.display()), error))
}

/// The first line of stdin: a password.
pub(crate) fn first_line_of_stdin() -> Result<String, CommandError> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| CommandError::because("read the password from stdin", error))?;
    let line = line.trim_end_matches(['\n', '\r']);
    if line.is_empty() {
        return Err(CommandError::usage("stdin is empty: expected a password"));
    }
    Ok(line.to_owned())
}
