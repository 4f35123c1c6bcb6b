//! Keys that a chart generates at random in each render: of a map, or of an item in a list with keys.
//!
//! The cluster has what an earlier render asked for, under the key of that render. That is not a difference as long as each
//! random key of Git has a counterpart in the cluster. A random key that is new in Git, or that another writer removed, has
//! none.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use crate::compare::{Addition, Change, Difference, twin};
use crate::drift::case::{Case, last_field};
use crate::drift::{Previous, Question, SecondRender};
use crate::object::{FieldPath, Segment};

/// How many bytes of names are compared for one object. Names are compared three at a time, so many names without a
/// counterpart would take hours. What is not compared is a difference.
pub(super) const MOST_COMPARED: usize = 20_000_000;

/// The key that the cluster has in place of a random key of Git. Also `None` while there is no second render yet; the
/// question is noted then.
pub(in crate::drift) fn held_key_of(case: &Case<'_>, difference: &Difference<'_>) -> Option<FieldPath> {
    let random = RandomKeys::beside(case, &difference.path)?;
    let at = random.asked_at.get(&difference.desired_path)?;
    random.held.get(*at).cloned()
}

/// The random key of Git in whose place the cluster has this one.
pub(in crate::drift) fn asked_key_of(case: &Case<'_>, addition: &Addition<'_>) -> Option<FieldPath> {
    let random = RandomKeys::beside(case, &addition.path)?;
    let at = random.held_at.get(&addition.path)?;
    random.asked.get(*at).cloned()
}

/// The random keys of all maps and lists of one object, by the path of the map or list. Each is computed once: every key
/// asks for all those beside it.
#[derive(Default)]
pub(in crate::drift) struct RandomKeysOf {
    known: BTreeMap<FieldPath, Option<Rc<RandomKeys>>>,
    /// The bytes compared so far.
    n_compared: usize,
    /// What is missing and what is left over, by the path of the map or list.
    candidates: Option<BTreeMap<FieldPath, Candidates>>,
}

/// The keys of one map or list that may be random: their paths and names.
#[derive(Clone, Default)]
struct Candidates {
    asked: Vec<(FieldPath, String)>,
    held: Vec<(FieldPath, String)>,
}

/// The random keys of one map or list; those at the same position are counterparts.
struct RandomKeys {
    /// Those of Git, by their paths in Git's object.
    asked: Vec<FieldPath>,
    asked_at: BTreeMap<FieldPath, usize>,
    /// Those of the cluster, by their paths there.
    held: Vec<FieldPath>,
    held_at: BTreeMap<FieldPath, usize>,
}

impl RandomKeys {
    fn beside(case: &Case<'_>, place: &FieldPath) -> Option<Rc<Self>> {
        let parent = place.parent().filter(|_| case.facts().render_may_vary)?;
        let mut all = case.once.random_keys.borrow_mut();
        if let Some(known) = all.known.get(&parent) {
            return known.clone();
        }
        let candidates = all.candidates.get_or_insert_with(|| Candidates::of(case)).remove(&parent);
        let random = candidates.and_then(|beside| Self::of(case, beside, &mut all.n_compared)).map(Rc::new);
        all.known.insert(parent, random.clone());
        random
    }

    fn of(case: &Case<'_>, beside: Candidates, n_compared: &mut usize) -> Option<Self> {
        let Candidates { mut asked, mut held } = beside;
        let first = asked.first().filter(|_| !held.is_empty())?.0.clone();
        let mut others = None;
        // If all differences come from another render, no second one is needed.
        if !matches!(case.facts().previous, Previous::Rerendered) {
            let second = names_of_second_render(case, &first)?;
            let now: HashSet<String> =
                names(case, &first.parent()?, case.desired.value()).into_iter().collect();
            let varying: Vec<String> = second.iter().filter(|name| !now.contains(*name)).cloned().collect();
            let second: HashSet<String> = second.into_iter().collect();
            asked.retain(|(_, name)| !second.contains(name));
            others = Some(varying);
        }
        let is_held = {
            let asked: Vec<Name<'_>> = asked.iter().map(|(_, name)| Name::of(name)).collect();
            let others: Option<Vec<Name<'_>>> =
                others.as_ref().map(|names| names.iter().map(|name| Name::of(name)).collect());
            let held = held.iter().map(|(_, name)| Name::of(name));
            held.map(|name| has_counterpart(&name, &asked, others.as_deref(), n_compared))
                .collect::<Option<Vec<bool>>>()?
        };
        let mut is_held = is_held.into_iter();
        held.retain(|_| is_held.next().unwrap_or_default());
        // If the cluster has more, a leftover looks the same as a key that Git removed.
        (held.len() <= asked.len()).then(|| {
            let paths = |keys: Vec<(FieldPath, String)>| -> Vec<FieldPath> {
                keys.into_iter().map(|(place, _)| place).collect()
            };
            let (asked, held) = (paths(asked), paths(held));
            let by_path = |paths: &[FieldPath]| {
                paths.iter().enumerate().rev().map(|(at, place)| (place.clone(), at)).collect()
            };
            Self { asked_at: by_path(&asked), held_at: by_path(&held), asked, held }
        })
    }
}

impl Candidates {
    /// The keys that the cluster lacks, and those that plumb wrote and Git does not have.
    fn of(case: &Case<'_>) -> BTreeMap<FieldPath, Self> {
        let mut all: BTreeMap<FieldPath, Self> = BTreeMap::new();
        for difference in &case.comparison.differences {
            if matches!(difference.change, Change::Missing | Change::ItemMissing)
                && difference.whole.is_none()
                && let Some(parent) = difference.path.parent()
                && let Some(name) = name(case, &difference.desired_path, case.desired.value())
            {
                all.entry(parent).or_default().asked.push((difference.desired_path.clone(), name));
            }
        }
        for addition in case.comparison.additions.iter().filter(|addition| addition.whole.is_none()) {
            // Without a missing key beside it, it is no counterpart.
            if let Some(beside) = addition.path.parent().and_then(|parent| all.get_mut(&parent))
                && case.is_ours(&addition.path)
                && let Some(name) = name(case, &addition.path, case.live.value())
            {
                beside.held.push((addition.path.clone(), name));
            }
        }
        all
    }
}

/// Is a name of the cluster built like a random one of Git? Without the names of another render, it is enough that they are
/// alike. `None` if too much was compared.
fn has_counterpart(
    held: &Name<'_>,
    asked: &[Name<'_>],
    others: Option<&[Name<'_>]>,
    n_compared: &mut usize,
) -> Option<bool> {
    let cost = held.text.len() + 1;
    let mut is_affordable = || {
        *n_compared = n_compared.saturating_add(cost);
        *n_compared <= MOST_COMPARED
    };
    for asked in asked {
        let Some(others) = others else {
            if !is_affordable() {
                return None;
            }
            if are_alike(asked, held) {
                return Some(true);
            }
            continue;
        };
        for other in others {
            if !is_affordable() {
                return None;
            }
            if is_of_pattern(held, asked, other) {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// The keys that the second render has where the first one has `place`. `None`: the question is noted, or there is nothing to
/// compare with.
fn names_of_second_render(case: &Case<'_>, place: &FieldPath) -> Option<Vec<String>> {
    let second = match case.evidence.answers.second_render {
        None => {
            case.ask(Question::SecondRender);
            None
        }
        Some(SecondRender::Object(second)) => second,
        Some(SecondRender::Unavailable) => None,
    }?;
    let schema = case.kind.map(|kind| kind.root);
    let parent = twin(&place.parent()?, case.desired.value(), second.value(), schema)?;
    Some(names(case, &parent, second.value()))
}

/// The names of all entries of a map or list.
fn names(case: &Case<'_>, parent: &FieldPath, object: &Value) -> Vec<String> {
    match parent.find(object) {
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(Value::Array(items)) => {
            (0..items.len()).filter_map(|index| name(case, &parent.index(index), object)).collect()
        }
        _ => Vec::new(),
    }
}

/// The key of a map, or the keys of a list's item.
fn name(case: &Case<'_>, place: &FieldPath, object: &Value) -> Option<String> {
    match place.segments().last()? {
        Segment::Field(_) => last_field(place).map(str::to_owned),
        Segment::Index(_) => {
            let keys = case.keys_of(&place.parent()?)?;
            let item = place.find(object)?;
            let keys = keys.iter().filter_map(|key| item.get(key));
            Some(
                keys.map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
                    .join("/"),
            )
        }
    }
}

/// A name and its words.
struct Name<'n> {
    text: &'n str,
    words: Vec<&'n str>,
}

impl<'n> Name<'n> {
    fn of(text: &'n str) -> Self {
        Self { text, words: text.split(|c: char| !c.is_alphanumeric()).collect() }
    }
}

/// Is a name built like two others that were generated for the same thing? It has all words that those two have in common.
fn is_of_pattern(name: &Name<'_>, one: &Name<'_>, other: &Name<'_>) -> bool {
    let mut pairs = one.words.iter().zip(&other.words).zip(&name.words);
    name.words.len() == one.words.len()
        && one.words.len() == other.words.len()
        && (are_alike(name, one) || are_alike(name, other))
        && pairs.all(|((one, other), word)| one != other || word == one)
}

/// Do two names have the same number of words, each as long as its counterpart? Numbers may have any length.
fn are_alike(one: &Name<'_>, other: &Name<'_>) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    one.words.len() == other.words.len()
        && one
            .words
            .iter()
            .zip(&other.words)
            .all(|(one, other)| one.len() == other.len() || (is_number(one) && is_number(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_name_is_recognised_by_its_pattern() {
        for (name, one, other, expected) in [
            ("job-x7f9a", "job-11ab2", "job-zz9pq", true),
            ("2026-11-16", "2026-11-17", "2026-11-18", true),
            ("run-7", "run-42", "run-1234", true),
            ("settings", "job-11ab2", "job-zz9pq", false),
            ("cron-x7f9a", "job-11ab2", "job-zz9pq", false),
            ("job-long-name", "job-11ab2", "job-zz9pq", false),
            ("config", "x7f9abcd", "11ab2cde", false),
        ] {
            let [found, one, other] = [name, one, other].map(Name::of);
            assert_eq!(is_of_pattern(&found, &one, &other), expected, "{name}");
        }
    }

    #[test]
    fn names_without_a_counterpart_are_compared_up_to_a_limit() {
        let texts = |prefix: &str| (0..300).map(|n| format!("{prefix}-{n:08}")).collect::<Vec<_>>();
        let (held, asked, others) = (texts("x"), texts("yy"), texts("zz"));
        let names = |texts: &'static [String]| texts.iter().map(|text| Name::of(text)).collect::<Vec<_>>();
        let (asked, others) = (names(asked.leak()), names(others.leak()));
        let mut n_compared = 0;
        let found: Option<Vec<bool>> = held
            .iter()
            .map(|held| has_counterpart(&Name::of(held), &asked, Some(&others), &mut n_compared))
            .collect();
        assert_eq!(found, None);
        assert!(n_compared < MOST_COMPARED + 100, "{n_compared}");
    }
}
