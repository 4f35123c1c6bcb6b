//! Texts that a message must not repeat, in every form in which programs quote a text.

use std::fmt::Write as _;

use super::redact::BLANK;

/// The message with each of these texts blanked: as it is, as JSON has it, and as Go quotes it.
pub fn without_texts<'text>(message: &str, texts: impl IntoIterator<Item = &'text str>) -> String {
    let mut forms: Vec<String> =
        texts.into_iter().filter(|text| !text.is_empty()).flat_map(written_forms).collect();
    // The longest first: one may be a part of another.
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    let mut message = message.to_owned();
    for form in forms.iter().filter(|form| !BLANK.contains(form.as_str())) {
        if message.contains(form.as_str()) {
            message = message.replace(form.as_str(), BLANK);
        }
    }
    message
}

fn written_forms(text: &str) -> Vec<String> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default().to_owned();
    // Go's encoder escapes what means something in HTML.
    let for_html = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let forms = [text.to_owned(), json, for_html, go_quoted(text)];
    forms.into_iter().filter(|form| !form.is_empty()).collect()
}

/// As `%q` has it, without the quotes.
fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(letter));
            }
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_every_form() {
        let secret = "a\"b\\c\n<d>&\u{1}\u{7}é";
        for quoted in [
            secret.to_owned(),
            serde_json::to_string(secret).unwrap(),
            r#"Invalid value: "a\"b\\c\n<d>&\x01\aé": no"#.to_owned(),
            r#"{"x":"a\"b\\c\n\u003cd\u003e\u0026\u0001\u0007é"}"#.to_owned(),
        ] {
            let shown = without_texts(&quoted, [secret]);
            assert!(!shown.contains("b\\") && shown.contains(BLANK), "{shown}");
        }
        assert_eq!(without_texts("hunter2 and hunter", ["hunter", "hunter2"]), "•••• and ••••");
        assert_eq!(without_texts("nothing", ["", "other"]), "nothing");
    }
}
