//! Values and paths as Helm's options take them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Helm reads a comma in `--set` as the start of the next assignment.
pub(super) fn escape_commas(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut escaped = String::with_capacity(value.len());
    let mut before = None;
    for character in value.chars() {
        if character == ',' && before != Some('\\') {
            escaped.push('\\');
        }
        escaped.push(character);
        before = Some(character);
    }
    escaped
}

/// True if the name of a parameter sets one value. `a=/etc/passwd,b` would read a file for another value.
pub(super) fn is_one_key(name: &str) -> bool {
    let mut is_escaped = false;
    name.chars().all(|character| {
        let is_plain = is_escaped || !matches!(character, ',' | '=');
        is_escaped = !is_escaped && character == '\\';
        is_plain
    })
}

/// Why Helm would not take the name of a release. Helm reads the option for it as a template, so nothing else is passed
/// on.
pub(super) fn release_name_problem(name: &str) -> Option<String> {
    const MAX_LENGTH: usize = 53;
    let is_edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let inside = |byte: &u8| is_edge(Some(byte)) || *byte == b'-';
        is_edge(bytes.first()) && is_edge(bytes.last()) && bytes.iter().all(inside)
    };
    if name.len() > MAX_LENGTH {
        return Some(format!(
            "the name of the release has {} characters, and Helm allows {MAX_LENGTH}",
            name.len()
        ));
    }
    (!name.split('.').all(is_label)).then(|| {
        format!(
            "`{name}` is not a valid name of a release: it consists of lower case letters, digits, `-` and `.`, and starts \
             and ends with a letter or digit"
        )
    })
}

/// The path with a backslash before each of these bytes.
pub(super) fn escaped(path: &Path, which: &[u8]) -> OsString {
    let bytes = path.as_os_str().as_bytes().iter();
    OsString::from_vec(
        bytes.flat_map(|byte| which.contains(byte).then_some(b'\\').into_iter().chain([*byte])).collect(),
    )
}

/// One path where Helm reads a list separated by commas. A file may be called `a,/etc/passwd`.
pub(super) fn comma_field(path: PathBuf) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return path.into_os_string();
    }
    let inner = bytes.iter().flat_map(|byte| (*byte == b'"').then_some(b'"').into_iter().chain([*byte]));
    OsString::from_vec([b'"'].into_iter().chain(inner).chain([b'"']).collect())
}

/// `v1.36.2+k3s1` to `1.36.2`: charts compare it with constraints, which do not match versions with suffixes.
pub(crate) fn plain_version(version: &str) -> String {
    let numbers = version.trim_start_matches('v');
    let end = numbers
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(numbers.len());
    numbers[..end].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_escaped_once() {
        for (value, expected) in [("a,b", "a\\,b"), ("a\\,b", "a\\,b"), ("{a,b}", "{a,b}"), ("", "")] {
            assert_eq!(escape_commas(value), expected);
        }
    }

    #[test]
    fn names_of_releases_are_names() {
        for (name, is_valid) in [
            ("web", true),
            ("a.b-c.d0", true),
            ("0", true),
            (&"x".repeat(53), true),
            (&"x".repeat(54), false),
            ("", false),
            ("{{ env \"HOME\" }}", false),
            ("a{{now}}", false),
            ("Web", false),
            ("-x", false),
            ("x-", false),
            ("a..b", false),
            ("a b", false),
            ("a/b", false),
            ("a\n", false),
            ("ä", false),
        ] {
            assert_eq!(release_name_problem(name).is_none(), is_valid, "{name}");
        }
    }

    #[test]
    fn paths_are_never_split() {
        assert_eq!(comma_field("/a/b c.yaml".into()), "/a/b c.yaml");
        assert_eq!(comma_field("/a,/b\"c".into()), "\"/a,/b\"\"c\"");
        assert_eq!(escaped(Path::new("/a,b=/c\\d"), b",\\"), "/a\\,b=/c\\\\d");
        for (name, expected) in
            [("a.b[0]", true), ("a\\,b", true), ("a,b", false), ("a=/x,b", false), ("a\\\\,b", false)]
        {
            assert_eq!(is_one_key(name), expected, "{name}");
        }
    }

    #[test]
    fn versions_lose_their_suffix() {
        for (version, expected) in
            [("v1.36.2+k3s1", "1.36.2"), ("1.29", "1.29"), ("v1.30.0-gke.100", "1.30.0")]
        {
            assert_eq!(plain_version(version), expected);
        }
    }
}
