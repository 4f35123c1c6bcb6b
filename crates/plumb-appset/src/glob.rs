//! The three dialects of path patterns that `ApplicationSets` use.

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

/// Most patterns that `{a,b}` may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// A pattern that was read. A malformed pattern matches nothing.
pub(crate) struct Glob {
    alternatives: Vec<Vec<Item>>,
    /// A folder whose files all match.
    folder: Option<String>,
}

impl Glob {
    pub(crate) fn new(dialect: Dialect, pattern: &str) -> Self {
        match dialect {
            Dialect::GoPath => Self::of([pattern], dialect),
            Dialect::Pathspec => Self::pathspec(pattern),
            Dialect::Doublestar => {
                let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
                let alternatives = alternatives(pattern);
                Self::of(alternatives.iter().map(String::as_str), dialect)
            }
        }
    }

    fn of<'a>(patterns: impl IntoIterator<Item = &'a str>, dialect: Dialect) -> Self {
        let alternatives = patterns.into_iter().filter_map(|pattern| items(pattern, dialect)).collect();
        Self { alternatives, folder: None }
    }

    /// Git's pathspec: a pattern, or the name of a directory.
    fn pathspec(pattern: &str) -> Self {
        if let Some(pattern) = pattern.strip_prefix(":(glob)") {
            return Self::of([pattern], Dialect::Doublestar);
        }
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let folder = if pattern == "." { "" } else { pattern.trim_end_matches('/') };
        Self { folder: Some(folder.to_owned()), ..Self::of([pattern], Dialect::Pathspec) }
    }

    /// True if it matches a whole path.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let is_inside = self.folder.as_deref().is_some_and(|folder| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        is_inside || self.alternatives.iter().any(|items| run(items, path))
    }

    /// What matching a path of this length costs, in steps.
    pub(crate) fn cost(&self, length: usize) -> u64 {
        let n_items: usize = self.alternatives.iter().map(Vec::len).sum();
        (n_items as u64).saturating_mul(length as u64) / 64 + 1
    }
}

/// One element of a pattern.
enum Item {
    Char(char),
    /// Any character; `true`: a slash too.
    Any(bool),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
        slash: bool,
    },
    /// Any run of characters; `true`: slashes too.
    Run(bool),
    /// `**/`: any number of whole segments, or none.
    Segments,
}

fn items(pattern: &str, dialect: Dialect) -> Option<Vec<Item>> {
    let crosses = dialect == Dialect::Pathspec;
    let characters: Vec<char> = pattern.chars().collect();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(character) = characters.get(at).copied() {
        at += 1;
        match character {
            '*' => {
                let stars = characters[at..].iter().take_while(|next| **next == '*').count();
                at += stars;
                let starts_segment = at < stars + 2 || characters[at - stars - 2] == '/';
                let is_double = dialect == Dialect::Doublestar && stars > 0 && starts_segment;
                if is_double && characters.get(at) == Some(&'/') {
                    at += 1;
                    items.push(Item::Segments);
                } else if is_double && at == characters.len() {
                    items.push(Item::Run(true));
                } else {
                    items.push(Item::Run(crosses));
                }
            }
            '?' => items.push(Item::Any(crosses)),
            '\\' => {
                items.push(Item::Char(*characters.get(at)?));
                at += 1;
            }
            '[' => {
                let (class, next) = class(&characters, at, crosses)?;
                items.push(class);
                at = next;
            }
            other => items.push(Item::Char(other)),
        }
    }
    Some(items)
}

/// The class that starts after `[`, and where it ends.
fn class(characters: &[char], start: usize, slash: bool) -> Option<(Item, usize)> {
    let mut at = start;
    let negated = matches!(characters.get(at), Some('^' | '!'));
    at += usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let low = match characters.get(at)? {
            ']' if !ranges.is_empty() => return Some((Item::Class { negated, ranges, slash }, at + 1)),
            '\\' => {
                at += 1;
                *characters.get(at)?
            }
            other => *other,
        };
        at += 1;
        let mut high = low;
        if characters.get(at) == Some(&'-') && characters.get(at + 1).is_some_and(|next| *next != ']') {
            high = characters[at + 1];
            at += 2;
        }
        ranges.push((low, high));
    }
}

/// Matches with a table of what each prefix of the pattern can reach: the cost is the product of both lengths.
fn run(items: &[Item], path: &str) -> bool {
    let text: Vec<char> = path.chars().collect();
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for item in items {
        let mut next = vec![false; text.len() + 1];
        match item {
            Item::Run(crosses) => {
                let mut open = false;
                for (at, slot) in next.iter_mut().enumerate() {
                    if at > 0 && !crosses && text[at - 1] == '/' {
                        open = false;
                    }
                    open |= reached[at];
                    *slot = open;
                }
            }
            Item::Segments => {
                let mut open = false;
                for (at, slot) in next.iter_mut().enumerate() {
                    *slot = reached[at] || (open && at > 0 && text[at - 1] == '/');
                    open |= reached[at];
                }
            }
            single => {
                for (at, character) in text.iter().enumerate() {
                    next[at + 1] = reached[at] && accepts(single, *character);
                }
            }
        }
        reached = next;
    }
    reached[text.len()]
}

fn accepts(item: &Item, character: char) -> bool {
    match item {
        Item::Char(expected) => *expected == character,
        Item::Any(slash) => *slash || character != '/',
        Item::Class { negated, ranges, slash } => {
            let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&character));
            inside != *negated && (*slash || character != '/')
        }
        Item::Run(_) | Item::Segments => false,
    }
}

/// `{a,b}` written out. Braces that do not match make the pattern malformed: it stands for none.
fn alternatives(pattern: &str) -> Vec<String> {
    if pattern.matches('{').count() != pattern.matches('}').count() {
        return Vec::new();
    }
    let mut complete = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        match braces(&pattern) {
            None => complete.push(pattern),
            Some((before, choices, after)) => {
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if complete.len() + open.len() > MAX_ALTERNATIVES {
            return Vec::new();
        }
    }
    complete
}

/// The first braces of a pattern: what is before them, what is between their commas, what is after them.
fn braces(pattern: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = pattern.find('{')?;
    let mut depth = 0;
    let mut choices = Vec::new();
    let mut start = open + 1;
    for (at, character) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => {
                choices.push(&pattern[start..at]);
                return Some((&pattern[..open], choices, &pattern[at + 1..]));
            }
            '}' => depth -= 1,
            ',' if depth == 1 => {
                choices.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
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
            (Dialect::Pathspec, "envs/*.yaml", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "envs", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "env", "envs/a.yaml", false),
            (Dialect::Pathspec, ":(glob)envs/*.yaml", "envs/dev/a.yaml", false),
            (Dialect::Pathspec, ":(glob)**/a.yaml", "envs/dev/a.yaml", true),
            (Dialect::Doublestar, "envs/*.yaml", "envs/dev/a.yaml", false),
            (Dialect::Doublestar, "**/a.yaml", "a.yaml", true),
            (Dialect::Doublestar, "envs/**/a.yaml", "envs/dev/eu/a.yaml", true),
            (Dialect::Doublestar, "envs/**", "envs/dev/a.yaml", true),
            (Dialect::Doublestar, "*.{json,yaml}", "a.json", true),
            (Dialect::Doublestar, "{a,b/{c,d}}/*.yaml", "b/d/x.yaml", true),
            (Dialect::Doublestar, "{a,b/{c,d}}/*.yaml", "b/x.yaml", false),
            (Dialect::Doublestar, "{a,b", "a", false),
            (Dialect::Doublestar, "/envs/a.yaml", "envs/a.yaml", true),
            (Dialect::Pathspec, "", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, ".", "envs/dev/a.yaml", true),
            (Dialect::Pathspec, "./envs/", "envs/dev/a.yaml", true),
        ];
        for (dialect, pattern, path, expected) in cases {
            assert_eq!(Glob::new(dialect, pattern).matches(path), expected, "{dialect:?} {pattern} {path}");
        }
    }

    #[test]
    fn patterns_that_multiply_are_refused() {
        let many = "{a,b}".repeat(30);
        assert!(!Glob::new(Dialect::Doublestar, &many).matches(&"a".repeat(30)));
        let open = format!("{}{{", "{a,b}".repeat(30));
        assert!(!Glob::new(Dialect::Doublestar, &open).matches("a"));
        // Stars cost no more than the product of both lengths.
        assert!(!Glob::new(Dialect::Pathspec, &"*a".repeat(500)).matches(&"a".repeat(400)));
    }
}
