//! Keys that a chart generates at random in each render: of a map, or of an item in a list with keys.
//!
//! The cluster has what an earlier render asked for, under the key of that render. That is not a difference as long as each
//! random key of Git has a counterpart in the cluster. A random key that is new in Git, or that another writer removed, has
//! none.

use serde_json::Value;

use crate::compare::{Addition, Change, Difference, twin};
use crate::drift::case::{Case, last_field};
use crate::drift::{Previous, Question, SecondRender};
use crate::object::{FieldPath, Segment};

/// The key that the cluster has in place of a random key of Git. Also `None` while there is no second render yet; the
/// question is noted then.
pub(in crate::drift) fn held_key_of(case: &Case<'_>, difference: &Difference<'_>) -> Option<FieldPath> {
    let random = RandomKeys::beside(case, &difference.path)?;
    let at = random.asked.iter().position(|(place, _)| *place == difference.desired_path)?;
    Some(random.held.get(at)?.0.clone())
}

/// The random key of Git in whose place the cluster has this one.
pub(in crate::drift) fn asked_key_of(case: &Case<'_>, addition: &Addition<'_>) -> Option<FieldPath> {
    let random = RandomKeys::beside(case, &addition.path)?;
    let at = random.held.iter().position(|(place, _)| *place == addition.path)?;
    Some(random.asked.get(at)?.0.clone())
}

/// The random keys of one map or list; those at the same position are counterparts.
struct RandomKeys {
    /// Those of Git, with their paths in Git's object.
    asked: Vec<(FieldPath, String)>,
    /// Those of the cluster, with their paths there.
    held: Vec<(FieldPath, String)>,
}

impl RandomKeys {
    fn beside(case: &Case<'_>, place: &FieldPath) -> Option<Self> {
        let parent = place.parent().filter(|_| case.facts().render_may_vary)?;
        let is_beside = |path: &FieldPath| path.parent().as_ref() == Some(&parent);
        let missing = case.comparison.differences.iter().filter(|difference| {
            matches!(difference.change, Change::Missing | Change::ItemMissing)
                && difference.whole.is_none()
                && is_beside(&difference.path)
        });
        let missing = missing.filter_map(|difference| {
            let name = name(case, &difference.desired_path, case.desired.value())?;
            Some((difference.desired_path.clone(), name))
        });
        let left = case.comparison.additions.iter().filter(|addition| {
            addition.whole.is_none() && is_beside(&addition.path) && case.is_ours(&addition.path)
        });
        let left =
            left.filter_map(|left| Some((left.path.clone(), name(case, &left.path, case.live.value())?)));
        let (mut asked, mut held): (Vec<_>, Vec<_>) = (missing.collect(), left.collect());
        let first = asked.first().filter(|_| !held.is_empty())?.0.clone();
        if matches!(case.facts().previous, Previous::Rerendered) {
            // All differences come from another render.
            held.retain(|(_, held)| asked.iter().any(|(_, asked)| are_alike(asked, held)));
        } else {
            let others = names_of_second_render(case, &first)?;
            let now = names(case, &first.parent()?, case.desired.value());
            asked.retain(|(_, name)| !others.contains(name));
            let others: Vec<&String> = others.iter().filter(|name| !now.contains(name)).collect();
            held.retain(|(_, held)| {
                asked.iter().any(|(_, asked)| others.iter().any(|other| is_of_pattern(held, asked, other)))
            });
        }
        // If the cluster has more, a leftover looks the same as a key that Git removed.
        (held.len() <= asked.len()).then_some(Self { asked, held })
    }
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

/// Is a name built like two others that were generated for the same thing? It has all words that those two have in common.
fn is_of_pattern(name: &str, one: &str, other: &str) -> bool {
    let common =
        words(one).into_iter().zip(words(other)).enumerate().filter(|(_, (one, other))| one == other);
    let name_words = words(name);
    let mut common = common.map(|(at, (word, _))| (at, word));
    (are_alike(name, one) || are_alike(name, other))
        && words(one).len() == words(other).len()
        && common.all(|(at, word)| name_words.get(at) == Some(&word))
}

/// Do two names have the same number of words, each as long as its counterpart? Numbers may have any length.
fn are_alike(one: &str, other: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let (one, other) = (words(one), words(other));
    one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(one, other)| one.len() == other.len() || (is_number(one) && is_number(other)))
}

fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).collect()
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
            assert_eq!(is_of_pattern(name, one, other), expected, "{name}");
        }
    }
}
