//! Regular expressions in Go's dialect, run by an engine of linear time.
//!
//! The two dialects differ in details: Go takes a `{` that starts no repetition literally, refuses `a**`, knows no
//! nested sets, and its `\d`, `\w`, `\s` and `\b` are those of ASCII.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// A compiled expression may not use more memory than this.
const SIZE_LIMIT: usize = 1 << 20;
/// Go refuses repetitions of more than this.
const MOST_REPETITIONS: u32 = 1000;

/// The expression, or nothing where Go would refuse it.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    let translated = Translation { chars: pattern.chars().peekable(), out: String::new() }.run()?;
    RegexBuilder::new(&translated).size_limit(SIZE_LIMIT).build().ok()
}

struct Translation<'pattern> {
    chars: Peekable<Chars<'pattern>>,
    out: String,
}

impl Translation<'_> {
    fn run(mut self) -> Option<String> {
        let mut repeats = false;
        while let Some(c) = self.chars.next() {
            let was_repeated = std::mem::take(&mut repeats);
            match c {
                '*' | '+' | '?' => {
                    // `a**` is an error in Go.
                    if was_repeated {
                        return None;
                    }
                    self.out.push(c);
                    self.lazy();
                    repeats = true;
                }
                '{' => match self.repetition()? {
                    Some(_) if was_repeated => return None,
                    Some(repetition) => {
                        self.out.push_str(&repetition);
                        self.lazy();
                        repeats = true;
                    }
                    None => self.out.push_str(r"\{"),
                },
                '}' => self.out.push_str(r"\}"),
                '[' => self.set()?,
                '\\' => self.escape()?,
                '(' => self.group()?,
                other => self.out.push(other),
            }
        }
        Some(self.out)
    }

    fn lazy(&mut self) {
        if self.chars.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
    }

    /// `{n}`, `{n,}` or `{n,m}` after its `{`. The outer `None` is an error, the inner one a literal `{`.
    #[expect(clippy::option_option, reason = "an error and a literal brace are two things")]
    fn repetition(&mut self) -> Option<Option<String>> {
        let ahead: String = self.chars.clone().take_while(|c| *c != '}').collect();
        let closes = self.chars.clone().nth(ahead.chars().count()) == Some('}');
        let (least, most) = ahead.split_once(',').map_or((ahead.as_str(), None), |(a, b)| (a, Some(b)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_repetition =
            closes && is_number(least) && most.is_none_or(|most| most.is_empty() || is_number(most));
        if !is_repetition {
            return Some(None);
        }
        let in_bounds = |text: &str| text.parse::<u32>().is_ok_and(|count| count <= MOST_REPETITIONS);
        if !in_bounds(least) || most.is_some_and(|most| !most.is_empty() && !in_bounds(most)) {
            return None;
        }
        self.chars.by_ref().take(ahead.chars().count() + 1).for_each(drop);
        Some(Some(format!("{{{ahead}}}")))
    }

    /// After a `(`: Go knows flags `imsU` and named groups, and nothing else.
    fn group(&mut self) -> Option<()> {
        self.out.push('(');
        let mut ahead = self.chars.clone();
        if ahead.next() == Some('?') {
            let next = ahead.next()?;
            if !(matches!(next, 'i' | 'm' | 's' | 'U' | '-' | ':' | 'P' | '<')) {
                return None;
            }
        }
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let text = match self.chars.next()? {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => r"[\t\n\x0C\r ]",
            'S' => r"[^\t\n\x0C\r ]",
            'b' => r"(?-u:\b)",
            'B' => r"(?-u:\B)",
            'Q' => {
                self.quotation();
                return Some(());
            }
            other => {
                self.push_escaped(other);
                return Some(());
            }
        };
        self.out.push_str(text);
        Some(())
    }

    /// `\Q…\E`: everything in it is literal.
    fn quotation(&mut self) {
        while let Some(c) = self.chars.next() {
            if c == '\\' && self.chars.next_if_eq(&'E').is_some() {
                break;
            }
            let mut buffer = [0; 4];
            self.out.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
        }
    }

    /// A set after its `[`.
    fn set(&mut self) -> Option<()> {
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.chars.next()? {
                ']' if !is_first => break,
                ']' => self.out.push_str(r"\]"),
                '[' if self.chars.peek() == Some(&':') => self.out.push('['),
                // Doubled, these are operators on sets in the other dialect.
                c @ ('[' | '&' | '~') => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '-' if self.out.ends_with('-') => self.out.push_str(r"\-"),
                '\\' => self.escape()?,
                other => self.out.push(other),
            }
            is_first = false;
        }
        self.out.push(']');
        Some(())
    }

    fn push_escaped(&mut self, c: char) {
        match c {
            // An escaped `<` or `>` is the sign itself in Go, and the edge of a word in the other dialect.
            '<' | '>' => self.out.push(c),
            other => {
                self.out.push('\\');
                self.out.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_go() {
        for (pattern, text, expected) in [
            ("applications", "applicationsets", true),
            ("prod/.*", "nonprod/x", true),
            ("^prod/", "nonprod/x", false),
            ("{a}", "{a}", true),
            ("a{2}", "aa", true),
            ("a{2}", "a{2}", false),
            ("a{,2}", "a{,2}", true),
            (r"\d", "٣", false),
            (r"\w+$", "ä", false),
            ("[[]", "[", true),
            ("[a&&b]", "&", true),
            ("[]a]", "]", true),
            (r"[\d-]x", "-x", true),
            (r"\Qa.b\E.", "a.bc", true),
            (r"\Qa.b\E", "axb", false),
            ("[[:digit:]]", "7", true),
            ("a*?b", "aab", true),
        ] {
            assert_eq!(compile(pattern).expect(pattern).is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in
            ["*", "*/*", "a**", "a+*", "(", ")", "[", "[]", r"\", "a{1001}", "(?=a)", "(?!a)", r"\1", "{2}"]
        {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_panics(pattern in ".{0,40}", text in ".{0,40}") {
            if let Some(regex) = compile(&pattern) {
                regex.is_match(&text);
            }
        }
    }
}
