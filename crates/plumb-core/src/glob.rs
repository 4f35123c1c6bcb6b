//! Patterns in projects, settings and ignore rules.
//!
//! Three dialects, as Argo CD reads them: plain globs (`*` matches everything), globs on URLs (`*` stops at
//! `/`, `**` does not), and those of Go's `filepath.Match` (no braces). All become regular expressions of an
//! engine that runs in linear time, so that no pattern can stall a check.

use regex::{Regex, RegexBuilder};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob(Matcher);

#[derive(Clone, Debug)]
enum Matcher {
    Everything,
    Exactly(String),
    Regex(Regex),
}

/// The text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern: {reason}")]
pub struct NotAGlob {
    /// The text.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Compiled patterns may not use more memory than this; a list of braces can otherwise grow without end.
const SIZE_LIMIT: usize = 1 << 20;

impl Glob {
    /// Matches every text.
    pub fn everything() -> Self {
        Self(Matcher::Everything)
    }

    /// `*` matches any text, `?` one character, `[ab]`, `[a-z]` and `[!a]` sets, `{a,b}` alternatives.
    pub fn plain(pattern: &str) -> Result<Self, NotAGlob> {
        Self::compile(pattern, None, true)
    }

    /// As [`Glob::plain`], but `*` and `?` stop at `/`; `**` does not. A lone `*` still matches everything.
    pub fn url(pattern: &str) -> Result<Self, NotAGlob> {
        Self::compile(pattern, Some('/'), true)
    }

    /// Go's `filepath.Match`: `*` and `?` stop at `/`, no alternatives.
    pub fn path(pattern: &str) -> Result<Self, NotAGlob> {
        Self::compile(pattern, Some('/'), false)
    }

    /// A pattern between slashes is a regular expression that may match anywhere in the text, any other a
    /// plain glob: the rule for lists of namespaces.
    pub fn regex_or_plain(pattern: &str) -> Result<Self, NotAGlob> {
        let inner = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        inner.map_or_else(|| Self::plain(pattern), |inner| Self::build(pattern, inner))
    }

    /// Does the whole text match?
    pub fn matches(&self, text: &str) -> bool {
        match &self.0 {
            Matcher::Everything => true,
            Matcher::Exactly(exact) => exact == text,
            Matcher::Regex(regex) => regex.is_match(text),
        }
    }

    fn compile(pattern: &str, separator: Option<char>, braces: bool) -> Result<Self, NotAGlob> {
        if pattern == "*" && braces {
            return Ok(Self(Matcher::Everything));
        }
        if !pattern.contains(['*', '?', '[', '{', '\\', ']', '}']) {
            return Ok(Self(Matcher::Exactly(pattern.to_owned())));
        }
        let translated = Translation { pattern, separator, braces }.run()?;
        Self::build(pattern, &translated)
    }

    fn build(pattern: &str, regex: &str) -> Result<Self, NotAGlob> {
        RegexBuilder::new(regex)
            .dot_matches_new_line(true)
            .size_limit(SIZE_LIMIT)
            .build()
            .map(|regex| Self(Matcher::Regex(regex)))
            .map_err(|_| NotAGlob { pattern: pattern.to_owned(), reason: "it is malformed or too large" })
    }
}

struct Translation<'pattern> {
    pattern: &'pattern str,
    separator: Option<char>,
    braces: bool,
}

impl Translation<'_> {
    fn error(&self, reason: &'static str) -> NotAGlob {
        NotAGlob { pattern: self.pattern.to_owned(), reason }
    }

    fn run(&self) -> Result<String, NotAGlob> {
        let one = if self.separator.is_some() { "[^/]" } else { "." };
        let mut regex = String::from("^(?:");
        let mut depth = 0_usize;
        let mut chars = self.pattern.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    let mut stars = 1;
                    while chars.next_if_eq(&'*').is_some() {
                        stars += 1;
                    }
                    let crosses = self.separator.is_none() || (self.braces && stars > 1);
                    regex.push_str(if crosses { ".*" } else { "[^/]*" });
                }
                '?' => regex.push_str(one),
                '[' => regex.push_str(&self.set(&mut chars)?),
                '{' if self.braces => {
                    depth += 1;
                    regex.push_str("(?:");
                }
                '}' if self.braces => {
                    depth = depth.checked_sub(1).ok_or_else(|| self.error("a `}` opens nothing"))?;
                    regex.push(')');
                }
                ',' if depth > 0 => regex.push('|'),
                '\\' => {
                    let next = chars.next().ok_or_else(|| self.error("it ends in `\\`"))?;
                    push_literal(&mut regex, next);
                }
                other => push_literal(&mut regex, other),
            }
        }
        if depth > 0 {
            return Err(self.error("a `{` is not closed"));
        }
        regex.push_str(")$");
        Ok(regex)
    }

    /// The rest of a set after its `[`.
    fn set(&self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, NotAGlob> {
        let unclosed = || self.error("a `[` is not closed");
        let mut set = String::from("[");
        if chars.next_if(|c| matches!(c, '!' | '^')).is_some() {
            set.push('^');
            if self.separator.is_some() {
                set.push('/');
            }
        }
        let mut is_empty = true;
        loop {
            match chars.next().ok_or_else(unclosed)? {
                ']' if is_empty => return Err(self.error("a `[]` matches nothing")),
                ']' => break,
                '-' if !is_empty && chars.peek() != Some(&']') => set.push('-'),
                '\\' => push_in_set(&mut set, chars.next().ok_or_else(unclosed)?),
                other => push_in_set(&mut set, other),
            }
            is_empty = false;
        }
        set.push(']');
        Ok(set)
    }
}

fn push_literal(regex: &mut String, c: char) {
    let mut buffer = [0; 4];
    regex.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
}

fn push_in_set(set: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        set.push('\\');
    }
    set.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(compile: fn(&str) -> Result<Glob, NotAGlob>, cases: &[(&str, &str, bool)]) {
        for (pattern, text, expected) in cases {
            let glob = compile(pattern).expect("a pattern");
            assert_eq!(glob.matches(text), *expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn plain_globs_cross_slashes() {
        check(
            Glob::plain,
            &[
                ("*", "", true),
                ("*", "https://a/b", true),
                ("", "", true),
                ("", "a", false),
                ("https://*.example.com", "https://a.b.example.com", true),
                ("https://*.example.com", "https://example.com", false),
                ("team-?", "team-1", true),
                ("team-?", "team-12", false),
                ("team-[a-c]", "team-b", true),
                ("team-[a-c]", "team-d", false),
                ("team-[!a-c]", "team-d", true),
                ("team-[^a-c]", "team-a", false),
                ("{a,b*}-x", "bcd-x", true),
                ("{a,b*}-x", "c-x", false),
                ("{a,{b,c}}d", "cd", true),
                ("a.b", "aXb", false),
                (r"a\*b", "a*b", true),
                (r"a\*b", "aab", false),
                ("[a-]", "-", true),
                ("*a*", "line\nbreak a", true),
                ("a+(b)$|^", "a+(b)$|^", true),
            ],
        );
    }

    #[test]
    fn url_globs_stop_at_slashes() {
        check(
            Glob::url,
            &[
                ("*", "https://a/b", true),
                ("https://git.example.com/*", "https://git.example.com/a", true),
                ("https://git.example.com/*", "https://git.example.com/a/b", false),
                ("https://git.example.com/**", "https://git.example.com/a/b", true),
                ("https://git.example.com/a**", "https://git.example.com/a/b", true),
                ("https://*/a", "https://git.example.com/a", true),
                ("https://*/a", "https://evil/x/a", false),
                ("https://g[!x]t/a", "https://g/t/a", false),
            ],
        );
    }

    #[test]
    fn path_globs_know_no_braces() {
        check(
            Glob::path,
            &[
                ("*", "apps", true),
                ("*", "a/b", false),
                ("*.k8s.io", "networking.k8s.io", true),
                ("{a,b}", "a", false),
                ("{a,b}", "{a,b}", true),
                ("**", "a/b", false),
            ],
        );
    }

    #[test]
    fn a_pattern_between_slashes_is_a_regular_expression() {
        check(
            Glob::regex_or_plain,
            &[
                ("/^team-[0-9]+$/", "team-12", true),
                ("/^team-[0-9]+$/", "team-x", false),
                ("/team/", "my-team-1", true),
                ("team-*", "team-x", true),
                ("/", "/", true),
            ],
        );
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for pattern in ["[", "[]", "[a", "{a", "a}", r"a\", "[z-a]"] {
            assert!(Glob::plain(pattern).is_err(), "{pattern}");
        }
        assert!(Glob::regex_or_plain("/(/").is_err());
        assert!(Glob::regex_or_plain("/(a{1000}){1000}/").is_err(), "too large");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_pattern_or_an_error(pattern in ".*", text in ".*") {
            for compile in [Glob::plain, Glob::url, Glob::path, Glob::regex_or_plain] {
                if let Ok(glob) = compile(&pattern) {
                    glob.matches(&text);
                }
            }
        }

        #[test]
        fn a_quoted_text_matches_itself_only(text in "[a-zA-Z0-9:/._-]{0,20}", other in "[a-z/]{0,20}") {
            let glob = Glob::plain(&text).expect("a pattern");
            proptest::prop_assert!(glob.matches(&text));
            proptest::prop_assert_eq!(glob.matches(&other), text == other);
        }
    }
}
