//! Keys that a chart generates at random in each render: of a map, or of an item in a list with keys.
//!
//! The cluster has what an earlier render asked for, under the key of that render. That is not a difference as long as each
//! random key of Git has a counterpart in the cluster. A random key that is new in Git, or that another writer removed, has
//! none.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use crate::compare::{Addition, Change, Difference, compare_values, twin};
use crate::drift::case::{Case, last_field};
use crate::drift::time_text::differ_in_time;
use crate::drift::{Previous, Question, SecondRender};
use crate::object::{FieldPath, Manifest, Segment};

/// How many bytes of names are compared for one object. Names are compared three at a time, so many names without a
/// counterpart would take hours. What is not compared is a difference.
pub(super) const MOST_COMPARED: usize = 20_000_000;

/// What comparing the content of two entries counts for, in bytes of names.
const COST_OF_CONTENT: usize = 500;
/// The same for a look at one entry of the second render.
const COST_OF_LOOK: usize = 20;

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
    asked: Keys,
    held: Keys,
}

/// Keys: their paths and names.
type Keys = Vec<(FieldPath, String)>;

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
        let is_held = if matches!(case.facts().previous, Previous::Rerendered) {
            let fixed = fixed_names(case, &first)?;
            let asked: Vec<Name<'_>> = asked.iter().map(|(_, name)| Name::of(name)).collect();
            let held = held.iter().map(|(_, name)| Name::of(name));
            held.map(|name| has_counterpart_since(&name, &asked, &fixed, n_compared))
                .collect::<Option<Vec<bool>>>()?
        } else {
            let second = names_of_second_render(case, &first)?;
            let now: HashSet<String> =
                names(case, &first.parent()?, case.desired.value()).into_iter().collect();
            let varying: Vec<String> = second.iter().filter(|name| !now.contains(*name)).cloned().collect();
            let second: HashSet<String> = second.into_iter().collect();
            asked.retain(|(_, name)| !second.contains(name));
            let asked: Vec<Name<'_>> = asked.iter().map(|(_, name)| Name::of(name)).collect();
            let others: Vec<Name<'_>> = varying.iter().map(|name| Name::of(name)).collect();
            let held = held.iter().map(|(_, name)| Name::of(name));
            held.map(|name| has_counterpart(&name, &asked, &others, n_compared))
                .collect::<Option<Vec<bool>>>()?
        };
        let mut is_held = is_held.into_iter();
        held.retain(|_| is_held.next().unwrap_or_default());
        // If the cluster has more, a leftover looks the same as a key that Git removed.
        if held.len() > asked.len() {
            return None;
        }
        let (asked, held) = with_same_content(case, asked, held, n_compared)?;
        let paths = |keys: Keys| -> Vec<FieldPath> { keys.into_iter().map(|(place, _)| place).collect() };
        let (asked, held) = (paths(asked), paths(held));
        let by_path = |paths: &[FieldPath]| {
            paths.iter().enumerate().rev().map(|(at, place)| (place.clone(), at)).collect()
        };
        Some(Self { asked_at: by_path(&asked), held_at: by_path(&held), asked, held })
    }
}

/// Gives each key of the cluster a random key of Git under which Git asks for the same. Only the name may be random: an
/// image, or a value, under a name like that is an edit. Those without a counterpart are left out, and the others are in one
/// order. `None`: a second render has to show which of the content varies, and the question is noted.
fn with_same_content(
    case: &Case<'_>,
    asked: Keys,
    held: Keys,
    n_compared: &mut usize,
) -> Option<(Keys, Keys)> {
    let mut free = asked;
    let mut others = None;
    let (mut paired, mut kept) = (Vec::new(), Vec::new());
    for key in held {
        let mut found = None;
        for (at, (place, _)) in free.iter().enumerate() {
            *n_compared = n_compared.saturating_add(COST_OF_CONTENT);
            if *n_compared > MOST_COMPARED {
                return None;
            }
            if has_content_of(case, place, &key.0, &mut others, n_compared)? {
                found = Some(at);
                break;
            }
        }
        if let Some(at) = found {
            paired.push(free.remove(at));
            kept.push(key);
        }
    }
    paired.extend(free);
    Some((paired, kept))
}

/// Does the cluster have under `held` what Git asks for under `asked`, but for the name and what varies with each render?
/// `others` are the entries of the second render, once they were needed.
fn has_content_of<'c>(
    case: &'c Case<'_>,
    asked: &FieldPath,
    held: &FieldPath,
    others: &mut Option<Vec<&'c Value>>,
    n_compared: &mut usize,
) -> Option<bool> {
    let (Some(wanted), Some(found)) = (asked.find(case.desired.value()), held.find(case.live.value())) else {
        return Some(false);
    };
    let places = compare_values(wanted, found, case.schema_of(held), case.is_built_in());
    let names: &[String] = held.parent().and_then(|list| case.keys_of(&list)).unwrap_or_default();
    let is_name = |place: &FieldPath| matches!(place.segments(), [Segment::Field(name)] if names.iter().any(|key| *key == **name));
    for place in places.iter().filter(|place| !is_name(place)) {
        if others.is_none() {
            *others = Some(entries_of_second_render(case, asked)?);
        }
        let others = others.as_deref().unwrap_or_default();
        *n_compared = n_compared.saturating_add(others.len() * COST_OF_LOOK);
        let varies = !others.is_empty() && others.iter().all(|other| place.find(other) != place.find(wanted));
        if !varies {
            return Some(false);
        }
    }
    Some(true)
}

/// All entries that the second render has where the first one has `place`.
fn entries_of_second_render<'c>(case: &'c Case<'_>, place: &FieldPath) -> Option<Vec<&'c Value>> {
    let second = second_render(case)?;
    let schema = case.kind.map(|kind| kind.root);
    let parent = twin(&place.parent()?, case.desired.value(), second.value(), schema)?;
    Some(match parent.find(second.value()) {
        Some(Value::Object(map)) => map.values().collect(),
        Some(Value::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    })
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

/// Is a name of the cluster built like a random one of Git? `None` if too much was compared.
fn has_counterpart(
    held: &Name<'_>,
    asked: &[Name<'_>],
    others: &[Name<'_>],
    n_compared: &mut usize,
) -> Option<bool> {
    let cost = held.text.len() + 1;
    for asked in asked {
        for other in others {
            *n_compared = n_compared.saturating_add(cost);
            if *n_compared > MOST_COMPARED {
                return None;
            }
            if is_of_pattern(held, asked, other) {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// The same where all differences come from another render of the same commit. A name that two renders of one day have in
/// common can only have changed with the date: another client may have chosen any other name. `None` if too much was
/// compared.
fn has_counterpart_since(
    held: &Name<'_>,
    asked: &[Name<'_>],
    fixed: &HashSet<String>,
    n_compared: &mut usize,
) -> Option<bool> {
    for asked in asked {
        *n_compared = n_compared.saturating_add(held.text.len() + asked.text.len() + 1);
        if *n_compared > MOST_COMPARED {
            return None;
        }
        let is_found = if fixed.contains(asked.text) {
            differ_in_time("", asked.text, held.text)
        } else {
            are_alike(asked, held)
        };
        if is_found {
            return Some(true);
        }
    }
    Some(false)
}

/// The names beside `place` that the second render has, too; all of Git's if there can be no second render. `None`: the
/// question is noted.
fn fixed_names(case: &Case<'_>, place: &FieldPath) -> Option<HashSet<String>> {
    let second = names_of_second_render(case, place);
    let names = match (second, case.evidence.answers.second_render) {
        (Some(second), _) => second,
        (None, None) => return None,
        // Even the name of the object is random.
        (None, Some(SecondRender::Object(None))) => Vec::new(),
        (None, Some(_)) => names(case, &place.parent()?, case.desired.value()),
    };
    Some(names.into_iter().collect())
}

/// The keys that the second render has where the first one has `place`. `None`: the question is noted, or there is nothing to
/// compare with.
fn names_of_second_render(case: &Case<'_>, place: &FieldPath) -> Option<Vec<String>> {
    let second = second_render(case)?;
    let schema = case.kind.map(|kind| kind.root);
    let parent = twin(&place.parent()?, case.desired.value(), second.value(), schema)?;
    Some(names(case, &parent, second.value()))
}

/// The object in a second render. `None`: the question is noted, or there is none.
fn second_render<'c>(case: &'c Case<'_>) -> Option<&'c Manifest> {
    match case.evidence.answers.second_render {
        None => {
            case.ask(Question::SecondRender);
            None
        }
        Some(SecondRender::Object(second)) => second,
        Some(SecondRender::Unavailable) => None,
    }
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
            .map(|held| has_counterpart(&Name::of(held), &asked, &others, &mut n_compared))
            .collect();
        assert_eq!(found, None);
        assert!(n_compared < MOST_COMPARED + 100, "{n_compared}");
    }
}
