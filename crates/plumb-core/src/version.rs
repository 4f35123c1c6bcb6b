//! Versions and constraints as Helm and Argo CD read them (the rules of the Go library Masterminds/semver v3):
//! `1.2`, `v1.2.3`, `^1.2`, `~1.2.x`, `>=1 <2 || 3.x`, `1.2 - 1.4`. Cargo's and npm's rules differ in the details.

use std::cmp::Ordering;
use std::fmt;

/// A version. Missing parts are 0, a leading `v` is allowed, build metadata does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    original: String,
    numbers: [u64; 3],
    prerelease: String,
}

impl Version {
    /// Reads a version; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = Parts::parse(text)?;
        let number = |part: &Part| match part {
            Part::Number(number) => Some(*number),
            Part::Absent => Some(0),
            Part::Any => None,
        };
        let numbers = [number(&parts.numbers[0])?, number(&parts.numbers[1])?, number(&parts.numbers[2])?];
        Some(Self { original: text.to_owned(), numbers, prerelease: parts.prerelease })
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.original
    }

    /// Is it a pre-release?
    pub fn is_prerelease(&self) -> bool {
        !self.prerelease.is_empty()
    }

    /// Major, minor and patch number.
    pub fn numbers(&self) -> [u64; 3] {
        self.numbers
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.original)
    }
}

/// By precedence; spellings of one version are equal in order.
impl Version {
    /// Which one is newer?
    pub fn precedence(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }
}

fn compare_prerelease(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => {
                let order = match (a.parse::<u64>(), b.parse::<u64>()) {
                    (Ok(a), Ok(b)) => a.cmp(&b),
                    (Ok(_), Err(_)) => Ordering::Less,
                    (Err(_), Ok(_)) => Ordering::Greater,
                    (Err(_), Err(_)) => a.cmp(b),
                };
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

/// Alternatives (`||`) of comparisons that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint(Vec<Vec<Comparison>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
    /// Position of the first missing or wildcard part.
    wild: Wild,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wild {
    None,
    Major,
    Minor,
    Patch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Longest spelling first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

impl Constraint {
    /// Reads a constraint; `None` if the text is none. Every version is a constraint, too.
    pub fn parse(text: &str) -> Option<Self> {
        let alternatives: Option<Vec<_>> = text.split("||").map(parse_all_of).collect();
        alternatives.map(Self)
    }

    /// Does the version satisfy it? Pre-releases do only where the constraint names one.
    pub fn matches(&self, version: &Version) -> bool {
        self.0.iter().any(|all_of| {
            let names_prerelease = all_of.iter().any(|comparison| comparison.version.is_prerelease());
            (names_prerelease || !version.is_prerelease())
                && all_of.iter().all(|comparison| comparison.matches(version))
        })
    }

    /// The newest of these texts that is a version and satisfies the constraint.
    pub fn newest<'a>(&self, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        candidates
            .into_iter()
            .filter_map(|text| Some((text, Version::parse(text)?)))
            .filter(|(_, version)| self.matches(version))
            .max_by(|(_, left), (_, right)| left.precedence(right))
            .map(|(text, _)| text)
    }
}

fn parse_all_of(text: &str) -> Option<Vec<Comparison>> {
    let text = text.trim();
    if let Some((from, to)) = text.split_once(" - ") {
        return Some(vec![
            Comparison::parse(Operator::GreaterOrEqual, from.trim())?,
            Comparison::parse(Operator::LessOrEqual, to.trim())?,
        ]);
    }
    let mut comparisons = Vec::new();
    let mut rest = text;
    loop {
        let (operator, after) = OPERATORS
            .iter()
            .find_map(|(spelling, operator)| Some((*operator, rest.strip_prefix(spelling)?)))
            .unwrap_or((Operator::Equal, rest));
        let after = after.trim_start();
        let end = after
            .find(|character: char| character.is_whitespace() || character == ',')
            .unwrap_or(after.len());
        let (version, tail) = after.split_at(end);
        comparisons.push(Comparison::parse(operator, version)?);
        let next = tail.trim_start();
        let next = next.strip_prefix(',').map_or(next, str::trim_start);
        if next.is_empty() {
            // A trailing comma adds no constraint.
            return tail.trim().is_empty().then_some(comparisons);
        }
        rest = next;
    }
}

impl Comparison {
    fn parse(operator: Operator, text: &str) -> Option<Self> {
        let parts = Parts::parse(text)?;
        let (wild, numbers) = match parts.numbers {
            [Part::Number(major), Part::Number(minor), Part::Number(patch)] => {
                (Wild::None, [major, minor, patch])
            }
            [Part::Number(major), Part::Number(minor), _] => (Wild::Patch, [major, minor, 0]),
            [Part::Number(major), _, _] => (Wild::Minor, [major, 0, 0]),
            _ => (Wild::Major, [0, 0, 0]),
        };
        let prerelease = if wild == Wild::Major { String::new() } else { parts.prerelease };
        Some(Self { operator, version: Version { original: text.to_owned(), numbers, prerelease }, wild })
    }

    fn matches(&self, version: &Version) -> bool {
        let order = version.precedence(&self.version);
        let [major, minor, patch] = version.numbers;
        let [own_major, own_minor, own_patch] = self.version.numbers;
        match self.operator {
            Operator::Equal if self.wild == Wild::None => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => self.tilde(version, order),
            Operator::NotEqual => match self.wild {
                Wild::None => order != Ordering::Equal,
                Wild::Major => false,
                Wild::Minor => major != own_major,
                Wild::Patch => major != own_major || minor != own_minor,
            },
            Operator::Greater => match self.wild {
                Wild::None | Wild::Major => order == Ordering::Greater,
                // `>11` starts at 12, `>11.1` at 11.2.
                Wild::Minor => major > own_major,
                Wild::Patch => (major, minor) > (own_major, own_minor),
            },
            Operator::Less => order == Ordering::Less,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::LessOrEqual => match self.wild {
                Wild::None => order != Ordering::Greater,
                Wild::Major | Wild::Minor => major <= own_major,
                Wild::Patch => (major, minor) <= (own_major, own_minor),
            },
            Operator::Caret => {
                if order == Ordering::Less {
                    false
                } else if own_major > 0 || self.wild == Wild::Minor {
                    major == own_major
                } else if major > 0 {
                    // `^*` has no number to hold on to: only versions below 1 are kept by the library, too.
                    false
                } else if own_minor > 0 || self.wild == Wild::Patch {
                    minor == own_minor
                } else {
                    minor == 0 && patch == own_patch
                }
            }
        }
    }

    fn tilde(&self, version: &Version, order: Ordering) -> bool {
        let [major, minor, _] = version.numbers;
        let [own_major, own_minor, _] = self.version.numbers;
        if order == Ordering::Less {
            return false;
        }
        match self.wild {
            Wild::Major => true,
            // `~0.0.0` means anything, by the library's word.
            Wild::None if self.version.numbers == [0, 0, 0] => true,
            Wild::Minor => major == own_major,
            Wild::None | Wild::Patch => major == own_major && minor == own_minor,
        }
    }
}

enum Part {
    Number(u64),
    Any,
    Absent,
}

struct Parts {
    numbers: [Part; 3],
    prerelease: String,
}

impl Parts {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (text, prerelease) = text.split_once('-').map_or((text, None), |(text, pre)| (text, Some(pre)));
        for suffix in [build, prerelease].into_iter().flatten() {
            let is_name = |name: &str| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            if !suffix.split('.').all(is_name) {
                return None;
            }
        }
        let mut numbers = [Part::Absent, Part::Absent, Part::Absent];
        let mut texts = text.split('.');
        for (index, slot) in numbers.iter_mut().enumerate() {
            *slot = match texts.next() {
                Some("x" | "X" | "*") => Part::Any,
                Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Part::Number(digits.parse().ok()?)
                }
                None if index > 0 => Part::Absent,
                Some(_) | None => return None,
            };
        }
        if texts.next().is_some() {
            return None;
        }
        Some(Self { numbers, prerelease: prerelease.unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(constraint: &str, yes: &[&str], no: &[&str]) {
        let parsed =
            Constraint::parse(constraint).unwrap_or_else(|| panic!("`{constraint}` is a constraint"));
        for text in yes {
            assert!(parsed.matches(&Version::parse(text).unwrap()), "{constraint} should match {text}");
        }
        for text in no {
            assert!(!parsed.matches(&Version::parse(text).unwrap()), "{constraint} should not match {text}");
        }
    }

    #[test]
    fn constraints_match_as_in_the_go_library() {
        check("1.2.3", &["1.2.3", "v1.2.3", "1.2.3+build"], &["1.2.4", "1.2.3-rc.1"]);
        check("1.2", &["1.2.0", "1.2.9"], &["1.3.0", "2.2.0"]);
        check("1.x", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.0"]);
        check("*", &["0.0.1", "9.9.9"], &["1.0.0-rc.1"]);
        check(">=1.2, <2", &["1.2.0", "1.99.0"], &["1.1.9", "2.0.0"]);
        check(">=1.2 <2", &["1.2.0", "1.99.0"], &["1.1.9", "2.0.0"]);
        check("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.1.0", "1.5.0"]);
        check("1.2.0 - 1.4.5", &["1.4.5"], &["1.4.6"]);
        check("~1.2.3", &["1.2.3", "1.2.9"], &["1.2.2", "1.3.0"]);
        check("~1", &["1.0.0", "1.9.0"], &["2.0.0"]);
        check("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]);
        check("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "0.2.2"]);
        check("^0.0.3", &["0.0.3"], &["0.0.4"]);
        check("^0.0", &["0.0.3"], &["0.1.0"]);
        check("^0", &["0.0.3", "0.9.0"], &["1.0.0"]);
        check(">11", &["12.0.0"], &["11.1.0"]);
        check(">11.1", &["11.2.0"], &["11.1.1"]);
        check("<=11", &["11.9.9"], &["12.0.0"]);
        check("!=1.x", &["2.0.0"], &["1.3.0"]);
        check("1.x || >=3", &["1.5.0", "3.0.0"], &["2.0.0"]);
        check(">=1.0.0-0", &["1.0.0", "1.0.0-rc.1", "2.0.0-alpha"], &["0.9.0"]);
        check(">=1.0.0-0 <2.0.0", &["1.5.0-rc.1"], &["2.1.0"]);
        check("=>1.0", &["1.0.0"], &["0.9.0"]);
    }

    #[test]
    fn branch_names_are_no_constraints() {
        for text in ["main", "", "release-1.x", "feature/x", "1.2.3.4", "v", ">=", "1.2,", "1..2", "HEAD"] {
            assert_eq!(Constraint::parse(text), None, "{text}");
        }
        assert!(Version::parse("1.x").is_none());
        assert!(Version::parse("v1").is_some());
    }

    #[test]
    fn newest_goes_by_precedence() {
        let any = Constraint::parse("*").unwrap();
        assert_eq!(any.newest(["v1.2.0", "v1.10.0", "nightly", "v1.9.0", "v2.0.0-rc.1"]), Some("v1.10.0"));
        let pre = Constraint::parse(">=0-0").unwrap();
        assert_eq!(pre.newest(["2.0.0-rc.2", "2.0.0-rc.10", "2.0.0-rc.1"]), Some("2.0.0-rc.10"));
        assert_eq!(any.newest(["nightly"]), None);
    }
}
