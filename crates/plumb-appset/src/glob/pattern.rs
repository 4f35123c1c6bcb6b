//! One pattern in its dialect.

use super::braces::alternatives;
use super::item::{Item, Syntax, items, run};
use super::pathspec::{cleaned, magic};

/// How `*` and the like are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Go's `path.Match`: `*` stays within a segment.
    GoPath,
    /// `git ls-files`: `*` crosses slashes.
    Pathspec,
    /// `**` crosses slashes, `{a,b}` chooses.
    Doublestar,
}

/// The longest pattern. No path is longer.
const MAX_LENGTH: usize = 4096;

/// A pattern that was read.
pub(crate) struct Glob {
    alternatives: Vec<Vec<Item>>,
    /// A folder whose files all match.
    folder: Option<String>,
    /// Case does not count: the pattern has small letters.
    ignores_case: bool,
    /// It matches what the rest does not match.
    is_negated: bool,
}

impl Glob {
    /// Reads a pattern. As in Argo CD, a malformed one of `path.Match` or Git matches nothing; one of `doublestar` is an
    /// error, and so is one that leaves the repository.
    pub(crate) fn new(dialect: Dialect, pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes"));
        }
        match dialect {
            Dialect::GoPath => Ok(Self::of(items(pattern, Syntax::GoPath))),
            Dialect::Pathspec => Self::pathspec(pattern),
            Dialect::Doublestar => {
                let pattern = cleaned(pattern).ok_or_else(|| outside(pattern))?;
                let malformed = |why: &str| format!("syntax error in pattern: {why}");
                let all = alternatives(&pattern).map_err(|why| malformed(&why))?;
                let all = all.iter().map(|one| items(one, Syntax::Doublestar));
                let all: Option<Vec<_>> = all.collect();
                let all = all.ok_or_else(|| malformed("a `[` is not closed, or a `\\` ends it"))?;
                Ok(Self::of(all))
            }
        }
    }

    fn of(alternatives: impl IntoIterator<Item = Vec<Item>>) -> Self {
        let alternatives = alternatives.into_iter().collect();
        Self { alternatives, folder: None, ignores_case: false, is_negated: false }
    }

    /// Git's pathspec: a pattern, or the name of a directory.
    fn pathspec(pathspec: &str) -> Result<Self, String> {
        let (magic, pattern) = magic(pathspec)?;
        if pattern.starts_with('/') {
            return Err(outside(pattern));
        }
        let cleaned = cleaned(pattern).ok_or_else(|| outside(pattern))?;
        let case = |text: String| if magic.icase { text.to_ascii_lowercase() } else { text };
        let folder = case(cleaned);
        // A slash at the end names a directory.
        let pattern = if pattern.ends_with('/') { format!("{folder}/") } else { folder.clone() };
        let found = if magic.literal { None } else { items(&pattern, Syntax::Git(!magic.glob)) };
        Ok(Self {
            folder: Some(folder),
            ignores_case: magic.icase,
            is_negated: magic.exclude,
            ..Self::of(found)
        })
    }

    /// True if it matches the whole path of a file.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let lower = self.ignores_case.then(|| path.to_ascii_lowercase());
        let path = lower.as_deref().unwrap_or(path);
        let is_inside = self.folder.as_deref().is_some_and(|folder| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let matches = is_inside || self.alternatives.iter().any(|items| run(items, path));
        matches != self.is_negated
    }

    /// True if it matches a directory, which is empty for the root. `a/**` matches `a`, too.
    pub(crate) fn matches_directory(&self, path: &str) -> bool {
        let takes_all = |items: &Vec<Item>| matches!(items.last(), Some(Item::Run(true)));
        let mut all = self.alternatives.iter();
        if path.is_empty() {
            return all.any(|items| items.is_empty() || (takes_all(items) && run(items, "")));
        }
        let inside = format!("{path}/");
        all.any(|items| run(items, path) || (takes_all(items) && run(items, &inside)))
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.alternatives.iter().map(|items| size_of_val(items.as_slice())).sum()
    }

    /// What matching a path of this length costs, in steps.
    pub(crate) fn cost(&self, length: usize) -> u64 {
        let n_items: usize = self.alternatives.iter().map(Vec::len).sum();
        (n_items as u64).saturating_mul(length as u64) / 64 + 1
    }
}

fn outside(pattern: &str) -> String {
    format!("'{pattern}' is outside repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_differ_in_what_crosses_a_slash() {
        let cases = [
            (Dialect::GoPath, "apps/*", "apps/web", true),
            (Dialect::GoPath, "apps/*", "apps/web/base", false),
            (Dialect::GoPath, "apps/**", "apps/web/base", false),
            (Dialect::GoPath, "[a-c]?", "b1", true),
            (Dialect::GoPath, "[^a]*", "apps", false),
            (Dialect::GoPath, "a/", "a", false),
            (Dialect::GoPath, "a[", "a[", false),
            (Dialect::GoPath, "[!a]", "!", true),
            (Dialect::GoPath, "[!a]", "b", false),
            (Dialect::GoPath, "[]a]", "a", false),
            (Dialect::GoPath, "[-a]", "a", false),
            (Dialect::GoPath, "[a-]", "a", false),
            (Dialect::GoPath, "[\\-a]", "-", true),
            (Dialect::GoPath, "a[^b]c", "a/c", true),
            (Dialect::Pathspec, "envs/*.yaml", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "envs", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "env", "envs/a.yaml", false),
            (Dialect::Pathspec, "[]a]", "]", true),
            (Dialect::Pathspec, "[!a]", "b", true),
            (Dialect::Pathspec, ":(glob)envs/*.yaml", "envs/dev/a.yaml", false),
            (Dialect::Pathspec, ":(glob)**/a.yaml", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, ":(glob)envs", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, ":(glob)*.{a,b}", "x.a", false),
            (Dialect::Pathspec, ":(icase)ENVS/*.YAML", "envs/Dev/a.yaml", true),
            (Dialect::Pathspec, ":(icase,glob)ENVS/*.YAML", "envs/dev/a.yaml", false),
            (Dialect::Pathspec, ":(literal)*.yaml", "a.yaml", false),
            (Dialect::Pathspec, ":(literal)*.yaml", "*.yaml", true),
            (Dialect::Pathspec, ":(top)envs", "envs/a", true),
            (Dialect::Pathspec, ":/envs", "envs/a", true),
            (Dialect::Pathspec, ":!envs", "envs/a", false),
            (Dialect::Pathspec, ":^envs", "apps/a", true),
            (Dialect::Pathspec, ":(exclude)envs", "apps/a", true),
            (Dialect::Pathspec, ":", "apps/a", true),
            (Dialect::Pathspec, "envs//*.yaml", "envs/a.yaml", true),
            (Dialect::Pathspec, "apps/../envs/*.yaml", "envs/a.yaml", true),
            (Dialect::Doublestar, "envs/*.yaml", "envs/dev/a.yaml", false),
            (Dialect::Doublestar, "**/a.yaml", "a.yaml", true),
            (Dialect::Doublestar, "envs/**/a.yaml", "envs/dev/eu/a.yaml", true),
            (Dialect::Doublestar, "envs/**", "envs/dev/a.yaml", true),
            (Dialect::Doublestar, "*.{json,yaml}", "a.json", true),
            (Dialect::Doublestar, "{a,b/{c,d}}/*.yaml", "b/d/x.yaml", true),
            (Dialect::Doublestar, "{a,b/{c,d}}/*.yaml", "b/x.yaml", false),
            (Dialect::Doublestar, "\\{a\\}", "{a}", true),
            (Dialect::Doublestar, "[{]a", "{a", true),
            (Dialect::Doublestar, "/envs/a.yaml", "envs/a.yaml", true),
            (Dialect::Doublestar, "./envs//a.yaml", "envs/a.yaml", true),
            (Dialect::Doublestar, "a.yaml/", "a.yaml", true),
            (Dialect::Pathspec, "", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, ".", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "./envs/", "envs/dev/a.yaml", true),
        ];
        for (dialect, pattern, path, expected) in cases {
            let glob = Glob::new(dialect, pattern).unwrap();
            assert_eq!(glob.matches(path), expected, "{dialect:?} {pattern} {path}");
        }
    }

    fn error(dialect: Dialect, pattern: &str) -> String {
        Glob::new(dialect, pattern).err().unwrap_or_default()
    }

    #[test]
    fn malformed_patterns_are_errors_where_they_are_in_argo_cd() {
        for pattern in ["{a,b", "a}", "a[", "[]a]", "[a", "{a,[b}", "a\\", "\\{a,b}", "{a,\\}"] {
            let error = error(Dialect::Doublestar, pattern);
            assert!(error.starts_with("syntax error in pattern: "), "{pattern}: {error}");
        }
        for (dialect, pattern) in [
            (Dialect::Doublestar, "../x"),
            (Dialect::Doublestar, "a/../../x"),
            (Dialect::Pathspec, "../x"),
            (Dialect::Pathspec, "/x"),
            (Dialect::Pathspec, ":(glob)../x"),
        ] {
            assert!(error(dialect, pattern).ends_with("is outside repository"), "{pattern}");
        }
        for pattern in [":(attr:x)a", ":(glob", ":(glob,literal)a", ":-a"] {
            assert_ne!(error(Dialect::Pathspec, pattern), "", "{pattern}");
        }
    }

    #[test]
    fn patterns_of_doublestar_match_directories_too() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let glob = Glob::new(Dialect::Doublestar, pattern).unwrap();
            assert_eq!(glob.matches_directory(path), expected, "{pattern} {path}");
        };
        check("envs/**", "envs", true);
        check("envs/*", "envs", false);
        check("envs/*", "envs/dev", true);
        check("**/*.yaml", "envs", false);
        check("**", "", true);
        check("", "", true);
        check("*", "", false);
        check("*", ".git", true);
    }

    #[test]
    fn patterns_that_multiply_are_refused() {
        let many = error(Dialect::Doublestar, &"{a,b}".repeat(30));
        assert!(many.contains("more than 256 patterns"), "{many}");
        assert_ne!(error(Dialect::Doublestar, &format!("{}{{", "{a,b}".repeat(30))), "");
        assert_ne!(error(Dialect::GoPath, &"a".repeat(5000)), "");
        // Stars cost no more than the product of both lengths.
        assert!(!Glob::new(Dialect::Pathspec, &"*a".repeat(500)).unwrap().matches(&"a".repeat(400)));
    }
}
