//! Fields as a form or a query.

/// A text as part of a form.
pub(super) fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let letter =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

/// Fields as a form or a query.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{}={}", escaped(name), escaped(value));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_escaped() {
        assert_eq!(form(&[("a", "b c&d=é"), ("x", "~-._")]), "a=b%20c%26d%3D%C3%A9&x=~-._");
    }
}
