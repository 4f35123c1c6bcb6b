//! `--file`.

use std::io::Read as _;

use crate::error::CommandError;

/// The text of a file, or of stdin.
pub(crate) fn read_text(file: &str) -> Result<String, CommandError> {
    if file.starts_with("https://") || file.starts_with("http://") {
        return Err(CommandError::usage(format!("{file}: files from the network are not fetched"))
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
