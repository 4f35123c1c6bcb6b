//! Label selectors as texts: `a=b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, with commas between them.

use std::collections::BTreeMap;

use plumb_api::Status;

/// A condition on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector(Vec<Term>);

impl Selector {
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let wrong = || Status::invalid(format!("cannot read the selector {text:?}"));
        let mut terms = Vec::new();
        for part in parts(text) {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            terms.push(term(part).ok_or_else(wrong)?);
        }
        Ok(Self(terms))
    }

    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| match term {
            Term::In(key, values) => labels.get(key).is_some_and(|label| values.contains(label)),
            Term::NotIn(key, values) => labels.get(key).is_none_or(|label| !values.contains(label)),
            Term::Exists(key) => labels.contains_key(key),
            Term::Missing(key) => !labels.contains_key(key),
        })
    }
}

/// Splits at commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn term(part: &str) -> Option<Term> {
    let is_key = |key: &str| !key.is_empty() && !key.contains([' ', '(', ')', '=', '!', ',']);
    let key = |text: &str| Some(text.trim().to_owned()).filter(|key| is_key(key));
    let listed = |text: &str| {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect::<Vec<_>>())
    };
    if let Some((left, right)) = part.split_once("!=") {
        return Some(Term::NotIn(key(left)?, vec![right.trim().to_owned()]));
    }
    if let Some((left, right)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Term::In(key(left)?, vec![right.trim().to_owned()]));
    }
    if let Some((left, right)) = part.split_once(" notin ").or_else(|| part.split_once(" notin(")) {
        let right = if right.trim_start().starts_with('(') { right.to_owned() } else { format!("({right}") };
        return Some(Term::NotIn(key(left)?, listed(&right)?));
    }
    if let Some((left, right)) = part.split_once(" in ").or_else(|| part.split_once(" in(")) {
        let right = if right.trim_start().starts_with('(') { right.to_owned() } else { format!("({right}") };
        return Some(Term::In(key(left)?, listed(&right)?));
    }
    match part.strip_prefix('!') {
        Some(rest) => Some(Term::Missing(key(rest)?)),
        None => Some(Term::Exists(key(part)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let labels =
            BTreeMap::from([("team".to_owned(), "a".to_owned()), ("tier".to_owned(), "web".to_owned())]);
        let check = |text: &str, expected: Option<bool>| {
            assert_eq!(
                Selector::parse(text).ok().map(|selector| selector.matches(&labels)),
                expected,
                "{text}"
            );
        };
        check("", Some(true));
        check("team=a,tier==web", Some(true));
        check("team=b", Some(false));
        check("team!=b,other!=x", Some(true));
        check("team in (a, b),tier notin (db)", Some(true));
        check("team in(b)", Some(false));
        check("team,!other", Some(true));
        check("!team", Some(false));
        check("team in a", None);
        check("=x", None);
    }
}
