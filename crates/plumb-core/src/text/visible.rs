//! Characters that a terminal obeys or does not show.
//!
//! Text that others wrote can contain escape sequences, line breaks that forge a row of a table, and characters that
//! reverse or hide a part of a line. Such characters are shown as `\n` or `\u{1b}`. Showing a text twice changes nothing.

use std::borrow::Cow;

/// True for a character that a terminal obeys, that changes the direction of a text, or that has no width.
pub fn is_hidden(character: char) -> bool {
    matches!(character,
        // Control characters: C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, joiners and fillers without a glyph.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{3164}' | '\u{ffa0}'
        // Marks of direction, zero-width spaces and joiners, line and paragraph separators, embeddings, isolates.
        | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Byte order mark, annotation marks, shorthand and musical format controls.
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags and variation selectors that only a program reads.
        | '\u{e0000}'..='\u{e0fff}')
}

/// The text as one line: every hidden character is visible, line breaks and tabs too.
pub fn one_line(text: &str) -> Cow<'_, str> {
    shown(text, is_hidden)
}

/// The text with its line breaks and tabs; every other hidden character is visible.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, |character| !matches!(character, '\n' | '\t') && is_hidden(character))
}

fn shown(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(plain);
    for character in rest.chars() {
        match character {
            character if !is_escaped(character) => shown.push(character),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            character => shown.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_visible() {
        for (text, expected) in [
            ("release freeze", "release freeze"),
            ("日本 é ✔ ", "日本 é ✔ "),
            ("a\nargocd/payments  Synced", r"a\nargocd/payments  Synced"),
            ("\u{1b}[2K\u{1b}]0;title\u{7}", r"\u{1b}[2K\u{1b}]0;title\u{7}"),
            ("\u{9b}2K \u{7f} \r\t\0", r"\u{9b}2K \u{7f} \r\t\u{0}"),
            (
                "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f",
                r"a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f",
            ),
            ("a\u{2028}b\u{61c}c", r"a\u{2028}b\u{61c}c"),
        ] {
            assert_eq!(one_line(text), expected);
            assert_eq!(one_line(expected), expected, "showing it again changes nothing");
        }
        assert_eq!(visible_lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
        assert!(matches!(visible_lines("a\nb"), Cow::Borrowed(_)), "ordinary text is not copied");
    }
}
