//! The elements of a pattern, and how they match.

/// How the elements of a pattern are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Go's `path.Match`.
    GoPath,
    /// Git's patterns; `true`: `*` crosses slashes.
    Git(bool),
    /// Go's `doublestar`, without braces.
    Doublestar,
}

/// One element of a pattern.
pub(super) enum Item {
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

/// The elements of a pattern; `None` if it is malformed.
pub(super) fn items(pattern: &str, syntax: Syntax) -> Option<Vec<Item>> {
    let crosses = syntax == Syntax::Git(true);
    let has_double = matches!(syntax, Syntax::Doublestar | Syntax::Git(false));
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
                let is_double = has_double && stars > 0 && starts_segment;
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
                let (class, next) = class(&characters, at, syntax)?;
                items.push(class);
                at = next;
            }
            other => items.push(Item::Char(other)),
        }
    }
    Some(items)
}

/// The class that starts after `[`, and where it ends. The dialects differ in what is malformed: `[]a]` is a class in Git
/// only, and Go's `path.Match` knows neither `[!a]` nor a `-` that stands for itself.
fn class(characters: &[char], start: usize, syntax: Syntax) -> Option<(Item, usize)> {
    let is_go = syntax == Syntax::GoPath;
    let mut at = start;
    let negated = match characters.get(at)? {
        '^' => true,
        '!' => !is_go,
        _ => false,
    };
    at += usize::from(negated);
    let mut ranges = Vec::new();
    let literal = |at: &mut usize| {
        let found = match characters.get(*at)? {
            '\\' => {
                *at += 1;
                *characters.get(*at)?
            }
            '-' | ']' if is_go => return None,
            other => *other,
        };
        *at += 1;
        Some(found)
    };
    loop {
        let closes = characters.get(at)? == &']';
        if closes && !ranges.is_empty() {
            // As in Go: a class of `path.Match` holds slashes, too.
            let slash = matches!(syntax, Syntax::GoPath | Syntax::Git(true));
            return Some((Item::Class { negated, ranges, slash }, at + 1));
        }
        if closes && syntax == Syntax::Doublestar {
            return None;
        }
        let low = literal(&mut at)?;
        let mut high = low;
        let next_closes = characters.get(at + 1) == Some(&']');
        if characters.get(at) == Some(&'-') && (is_go || !next_closes) {
            at += 1;
            high = literal(&mut at)?;
        }
        ranges.push((low, high));
    }
}

/// Matches with a table of what each prefix of the pattern can reach: the cost is the product of both lengths.
pub(super) fn run(items: &[Item], path: &str) -> bool {
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
