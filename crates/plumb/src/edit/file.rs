//! `--file`.

use std::io::Read as _;

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
