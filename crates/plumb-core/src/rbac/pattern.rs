//! What a line says of a resource, an action or an object.

use regex::Regex;

use crate::glob::Glob;
use crate::rbac::go_regex;

/// How the words of a policy are read: `policy.matchMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// As globs in which `*` matches any text.
    #[default]
    Glob,
    /// As regular expressions that may match anywhere in the word.
    Regex,
}

impl MatchMode {
    /// `regex` is the one word with a meaning; Argo CD reads every other one as glob.
    pub fn from_setting(text: &str) -> Self {
        if text == "regex" { Self::Regex } else { Self::Glob }
    }
}

/// A compiled word of a line.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Everything,
    Exactly(String),
    /// A start and an end. They may overlap: Argo CD's library matches `prod/web` by `prod/*/web`, and policies in use
    /// may rely on it.
    Ends(String, String),
    /// One character, or none: how Argo CD's library reads a lone `?` or `[!x]`.
    AtMostOne(Glob),
    Glob(Glob),
    Regex(Regex),
    /// The word cannot be read.
    Invalid,
}

/// What comes of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    Yes,
    No,
    /// The pattern cannot be read, and the mode makes that an error: the whole decision is "no".
    Unreadable,
}

impl Pattern {
    pub(super) fn new(text: &str, mode: MatchMode) -> Self {
        match mode {
            MatchMode::Glob => Self::glob(text),
            MatchMode::Regex => go_regex::compile(text).map_or(Self::Invalid, Self::Regex),
        }
    }

    fn glob(text: &str) -> Self {
        if text == "*" {
            return Self::Everything;
        }
        if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return Self::Exactly(text.to_owned());
        }
        if !text.contains(['?', '[', ']', '{', '}', '\\'])
            && let Some((start, end)) = text.split_once('*')
            && !end.contains('*')
        {
            return Self::Ends(start.to_owned(), end.to_owned());
        }
        let Some(glob) = closed(text) else { return Self::Invalid };
        let is_lone_set = text.starts_with("[!") && text.find(']') == Some(text.len() - 1);
        if text == "?" || is_lone_set { Self::AtMostOne(glob) } else { Self::Glob(glob) }
    }

    pub(super) fn matches(&self, word: &str, mode: MatchMode) -> Matched {
        let matches = match self {
            Self::Everything => true,
            Self::Exactly(exact) => exact == word,
            Self::Ends(start, end) => word.starts_with(start.as_str()) && word.ends_with(end.as_str()),
            Self::AtMostOne(glob) => word.is_empty() || glob.matches(word),
            Self::Glob(glob) => glob.matches(word),
            Self::Regex(regex) => regex.is_match(word),
            Self::Invalid if mode == MatchMode::Regex => return Matched::Unreadable,
            Self::Invalid => false,
        };
        if matches { Matched::Yes } else { Matched::No }
    }
}

/// The glob; a `{` that is not closed counts as closed at the end, as in Argo CD's library.
fn closed(text: &str) -> Option<Glob> {
    let opened = text.matches('{').count();
    (0..=opened).find_map(|missing| Glob::plain(&format!("{text}{}", "}".repeat(missing))).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, word: &str) -> bool {
        Pattern::new(pattern, MatchMode::Glob).matches(word, MatchMode::Glob) == Matched::Yes
    }

    #[test]
    fn globs_match_as_in_argo_cd() {
        for (pattern, word, expected) in [
            ("*", "", true),
            ("*/*", "a", false),
            ("*/*", "a/b", true),
            ("prod/*/web", "prod/web", true),
            ("prod/*/web", "prod/ns/web", true),
            ("prod/*/web", "prod/ns/db", false),
            ("a*a", "a", true),
            ("?", "", true),
            ("?", "a", true),
            ("?", "ab", false),
            ("[!x]", "", true),
            ("[!x]", "x", false),
            ("[!x]y", "y", false),
            ("{web,db}/*", "db/a", true),
            ("{web,db", "db", true),
            ("[", "[", false),
            (r"a\*", "a*", true),
            ("", "", true),
            ("", "a", false),
            ("Prod", "prod", false),
        ] {
            assert_eq!(matches(pattern, word), expected, "{pattern} on {word}");
        }
    }

    #[test]
    fn an_unreadable_expression_is_an_error_in_regex_mode_only() {
        assert_eq!(Pattern::new("*", MatchMode::Regex).matches("a", MatchMode::Regex), Matched::Unreadable);
        assert_eq!(Pattern::new("[", MatchMode::Glob).matches("[", MatchMode::Glob), Matched::No);
    }
}
