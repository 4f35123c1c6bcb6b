//! Files of `NAME=value` lines, as `kubectl create secret --from-env-file` reads them.

use super::plain::Values;

/// Why a file of variables cannot be read. No value is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvFileError {
    /// The file is not text.
    #[error("it is not UTF-8")]
    Encoding,
    /// The line has no `=`. kubectl would take such a value from the environment; plumb reads no other places.
    #[error("line {line} has no `=`; write NAME=value")]
    NoValue {
        /// From 1.
        line: usize,
    },
    /// The line has no usable name.
    #[error("line {line} has a name that no key of a Secret can have; use letters, digits, `-`, `_` and `.`")]
    Name {
        /// From 1.
        line: usize,
    },
    /// The name is there twice.
    #[error("line {line} sets a name that line {first_line} sets, too")]
    Twice {
        /// From 1.
        line: usize,
        /// From 1.
        first_line: usize,
    },
}

/// Reads `NAME=value` lines. Blank lines and comments are skipped, quotes are part of the value.
pub fn parse_env_file(bytes: &[u8]) -> Result<Values, EnvFileError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EnvFileError::Encoding)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut values = Values::default();
    let mut lines = std::collections::BTreeMap::new();
    for (index, content) in text.lines().enumerate() {
        let (line, content) = (index + 1, content.trim_start());
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let (name, value) = content.split_once('=').ok_or(EnvFileError::NoValue { line })?;
        if !Values::is_key(name) {
            return Err(EnvFileError::Name { line });
        }
        if let Some(first_line) = lines.insert(name.to_owned(), line) {
            return Err(EnvFileError::Twice { line, first_line });
        }
        values.set(name, value.as_bytes().to_vec());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
        let shown = |(key, value): (&str, &[u8])| (key.to_owned(), String::from_utf8_lossy(value).into());
        parse_env_file(text.as_bytes()).map(|values| values.iter().map(shown).collect())
    }

    #[test]
    fn lines_are_read_as_kubectl_reads_them() {
        let text = "\u{feff}# comment\n\nUSER=admin\r\n  PASSWORD=\"a=b # c\" \nEMPTY=\n";
        let values = read(text).unwrap();
        let values: Vec<(&str, &str)> =
            values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(values, [("EMPTY", ""), ("PASSWORD", "\"a=b # c\" "), ("USER", "admin")]);
    }

    #[test]
    fn an_error_names_the_line_and_no_value() {
        assert_eq!(read("A=1\nhunter2"), Err(EnvFileError::NoValue { line: 2 }));
        assert_eq!(read("my key=1"), Err(EnvFileError::Name { line: 1 }));
        assert_eq!(read("A=1\n\nA=2"), Err(EnvFileError::Twice { line: 3, first_line: 1 }));
        assert_eq!(parse_env_file(&[0xff]).err(), Some(EnvFileError::Encoding));
    }
}
