//! Paths of requests.

/// A value as one part of a path or of a query.
pub(crate) fn part(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

/// A path with a query. Empty values are left out.
pub(crate) fn with(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        whole.push(if whole.contains('?') { '&' } else { '?' });
        whole.push_str(name);
        whole.push('=');
        whole.push_str(&part(value));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        assert_eq!(with("/a", &[("b", "c/d e"), ("f", ""), ("g", "h")]), "/a?b=c%2Fd%20e&g=h");
        assert_eq!(with("/a", &[]), "/a");
    }
}
