//! Objects that get another name in each render: `run-{{ randAlphaNum 5 }}`.
//!
//! After such a render the cluster lacks the new name and has the old one: a missing object and an orphan that are the same
//! object. A second render of the same commit shows which part of the name is random.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::ObjectKey;

/// How many names are compared for one app. What is not compared is missing and left over.
const MOST_COMPARED: usize = 4_000_000;

/// The most letters that random parts of two names have in common by chance.
const CHANCE: usize = 2;

/// Pairs missing objects with leftover ones. `first` and `second` are the objects of two renders of one commit; `missing`
/// is the part of `first` that the cluster lacks, `left_over` what the app tracks besides. Each pair is in the map in both
/// directions.
pub fn renamed(
    first: &BTreeSet<&ObjectKey>,
    second: &BTreeSet<&ObjectKey>,
    missing: &[&ObjectKey],
    left_over: &[&ObjectKey],
) -> BTreeMap<ObjectKey, ObjectKey> {
    let mut pairs = BTreeMap::new();
    let mut left_over: BTreeMap<_, Vec<&ObjectKey>> = by_kind(left_over.iter().copied());
    let second_only = by_kind(second.iter().filter(|key| !first.contains(**key)).copied());
    let mut n_compared = 0usize;
    for missing in missing.iter().filter(|key| !second.contains(**key)) {
        let Some(left_over) = left_over.get_mut(&kind_of(missing)) else { continue };
        let others = second_only.get(&kind_of(missing)).into_iter().flatten();
        n_compared = n_compared.saturating_add(others.clone().count() + left_over.len());
        if n_compared > MOST_COMPARED {
            break;
        }
        // Of several, the most similar one shows best which part is not random.
        let Some(stays) = others.map(|other| alike(&missing.name, &other.name)).max() else { continue };
        let enough = stays.saturating_sub(CHANCE).max(1);
        let found = left_over.iter().position(|key| alike(&missing.name, &key.name) >= enough);
        if let Some(found) = found {
            let left = left_over.swap_remove(found);
            pairs.insert((*missing).clone(), left.clone());
            pairs.insert(left.clone(), (*missing).clone());
        }
    }
    pairs
}

/// Group, kind and namespace.
type KindAndNamespace<'k> = (&'k str, &'k str, Option<&'k str>);

fn kind_of(key: &ObjectKey) -> KindAndNamespace<'_> {
    (&key.group, &key.kind, key.namespace.as_deref())
}

fn by_kind<'k>(
    keys: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeMap<KindAndNamespace<'k>, Vec<&'k ObjectKey>> {
    let mut by_kind: BTreeMap<_, Vec<&ObjectKey>> = BTreeMap::new();
    for key in keys {
        by_kind.entry(kind_of(key)).or_default().push(key);
    }
    by_kind
}

/// The number of letters that two names have in common at the start and at the end.
fn alike(one: &str, other: &str) -> usize {
    let same = |(one, other): &(u8, u8)| one == other;
    let start = one.bytes().zip(other.bytes()).take_while(same).count();
    let room = one.len().min(other.len()) - start;
    start + one.bytes().rev().zip(other.bytes().rev()).take_while(same).count().min(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey::new("", kind, Some("ns".into()), name)
    }

    fn pair(first: &[&str], second: &[&str], live: &[&str]) -> Vec<(String, String)> {
        let keys = |names: &[&str]| names.iter().map(|name| key("Job", name)).collect::<Vec<_>>();
        let (first, second, live) = (keys(first), keys(second), keys(live));
        let missing: Vec<&ObjectKey> = first.iter().filter(|key| !live.contains(key)).collect();
        let left_over: Vec<&ObjectKey> = live.iter().filter(|key| !first.contains(key)).collect();
        let pairs = renamed(&first.iter().collect(), &second.iter().collect(), &missing, &left_over);
        let pairs = pairs.into_iter().filter(|(one, _)| first.contains(one));
        pairs.map(|(one, other)| (one.name.clone(), other.name.clone())).collect()
    }

    #[test]
    fn a_random_name_is_recognised_by_its_fixed_part() {
        let expected = [("run-aaaaa-x".to_owned(), "run-zzzzz-x".to_owned())];
        assert_eq!(pair(&["run-aaaaa-x"], &["run-bbbbb-x"], &["run-zzzzz-x"]), expected);
    }

    #[test]
    fn common_letters_by_chance_are_ignored() {
        let expected = [("run-d1uo2".to_owned(), "run-vxja5".to_owned())];
        assert_eq!(pair(&["run-d1uo2"], &["run-daab2"], &["run-vxja5"]), expected);
    }

    #[test]
    fn an_object_with_a_fixed_name_is_missing() {
        assert_eq!(pair(&["migrate-2"], &["migrate-2"], &["migrate-1"]), []);
    }

    #[test]
    fn another_name_is_another_object() {
        assert_eq!(pair(&["run-aaaaa"], &["run-bbbbb"], &["import-zzzzz"]), []);
        assert_eq!(pair(&["aaaaa"], &["bbbbb"], &["zzzzz"]), [], "nothing to recognise it by");
    }

    #[test]
    fn thousands_of_names_are_compared_up_to_a_limit() {
        let names = |prefix: &str| -> Vec<ObjectKey> {
            (0..20_000).map(|n| key("Job", &format!("{prefix}{n:05}-{prefix}"))).collect()
        };
        let (first, second, live) = (names("a"), names("b"), names("c"));
        let [first, second, live] = [&first, &second, &live].map(|keys| keys.iter().collect::<Vec<_>>());
        let sets = [&first, &second].map(|keys| keys.iter().copied().collect());
        assert!(renamed(&sets[0], &sets[1], &first, &live).is_empty());
    }

    #[test]
    fn each_is_paired_once() {
        let found = pair(&["run-a1", "run-a2"], &["run-b1", "run-b2"], &["run-z1"]);
        assert_eq!(found.len(), 1);
    }
}
