//! Lists in the typed walk: by key, as a set, as a whole.

use std::cell::LazyCell;

use serde_json::Value;

use super::item_keys::{KeyFields, Members, is_twice_in_set, names_twice};
use super::value::Spelling;
use super::walk::{Side, Step, Walk};
use super::{Change, Comparison, Fill, Reason};
use crate::schema::{ListType, Schema, Shape};

/// Lists longer than this are compared position by position when they do not match; pairing them is quadratic.
const MAX_PAIRED: usize = 256;

impl<'a> Walk<'a> {
    pub(super) fn list(
        &mut self,
        schema: Option<Schema<'a>>,
        whole_desired: &'a Value,
        whole_live: &'a Value,
        desired: &'a [Value],
        live: &'a [Value],
    ) {
        match schema.map(Schema::shape) {
            Some(Shape::List { items, list_type: ListType::Map(keys) }) if self.atomic.is_none() => {
                self.keyed_list(items, keys, whole_desired, whole_live, desired, live);
            }
            Some(Shape::List { list_type: ListType::Set, .. }) if self.atomic.is_none() => {
                self.set(whole_desired, whole_live, desired, live);
            }
            Some(Shape::List { items, list_type }) => {
                // The server looks for duplicates inside what is replaced as a whole too.
                if names_twice(list_type, items, desired) {
                    self.out.duplicates.push(self.path(Side::Desired));
                }
                self.inside(true, |walk| {
                    walk.atomic_list(Some(items), whole_desired, whole_live, desired, live);
                });
            }
            Some(Shape::Any | Shape::Map { .. } | Shape::Scalar(_)) | None => {
                self.inside(true, |walk| walk.atomic_list(None, whole_desired, whole_live, desired, live));
            }
        }
    }

    fn keyed_list(
        &mut self,
        items: Schema<'a>,
        keys: &[String],
        whole_desired: &'a Value,
        whole_live: &'a Value,
        desired: &'a [Value],
        live: &'a [Value],
    ) {
        let fields = KeyFields::of(keys, items);
        if fields.has_twice(desired) {
            self.out.duplicates.push(self.path(Side::Desired));
            return;
        }
        let pairs = pairs(&fields, desired, live);
        let mut taken = vec![false; live.len()];
        for pair in pairs.iter().flatten() {
            if let Some(taken) = taken.get_mut(*pair) {
                *taken = true;
            }
        }
        for (at, (item, pair)) in desired.iter().zip(&pairs).enumerate() {
            self.steps.push(Step::Item { desired: Some(at), live: *pair });
            if let Some(found) = pair.and_then(|pair| live.get(pair)) {
                self.place(Some(items), item, found);
            } else {
                self.differ(Change::ItemMissing, Some(item), None);
                self.scan(Some(items), item);
            }
            self.steps.pop();
        }
        let of_git = LazyCell::new(|| fields.positions(desired));
        for (at, found) in live.iter().enumerate() {
            if taken.get(at) == Some(&false) {
                self.steps.push(Step::Item { desired: None, live: Some(at) });
                // A second item of a name that Git has: of two variables of one name the last one counts.
                if of_git.contains_key(&fields.key(found)) {
                    self.differ(Change::Extra, None, Some(found));
                } else {
                    self.add(found, Fill::None, true);
                }
                self.steps.pop();
            }
        }
        if !pairs.iter().flatten().is_sorted() {
            if order_matters(self.steps.last().copied(), desired) {
                self.differ(Change::Order, Some(whole_desired), Some(whole_live));
            } else {
                self.forgive(Reason::Spelling(Spelling::Order), Some(whole_desired), Some(whole_live));
            }
        }
    }

    fn set(
        &mut self,
        whole_desired: &'a Value,
        whole_live: &'a Value,
        desired: &'a [Value],
        live: &'a [Value],
    ) {
        if is_twice_in_set(desired) {
            self.out.duplicates.push(self.path(Side::Desired));
            return;
        }
        let (of_git, of_live) = (Members::of(desired), Members::of(live));
        for (at, item) in desired.iter().enumerate() {
            if !of_live.contains(item) {
                self.steps.push(Step::Item { desired: Some(at), live: None });
                self.differ(Change::ItemMissing, Some(item), None);
                self.steps.pop();
            }
        }
        for (at, found) in live.iter().enumerate() {
            if !of_git.contains(found) {
                self.steps.push(Step::Item { desired: None, live: Some(at) });
                self.add(found, Fill::None, true);
                self.steps.pop();
            }
        }
        let kept = live.iter().filter(|found| of_git.contains(found));
        if desired.iter().all(|item| of_live.contains(item)) && !kept.eq(desired) {
            self.forgive(Reason::Spelling(Spelling::Order), Some(whole_desired), Some(whole_live));
        }
    }

    /// A list that is replaced as a whole. Satisfied if every item has all that Git asks, in Git's order;
    /// otherwise the smallest account of what differs.
    fn atomic_list(
        &mut self,
        items: Option<Schema<'a>>,
        whole_desired: &'a Value,
        whole_live: &'a Value,
        desired: &'a [Value],
        live: &'a [Value],
    ) {
        if desired == live {
            return;
        }
        if desired.len() == live.len() {
            let trial = self.trial(|walk| walk.pairwise(items, desired, live));
            if trial.differences.is_empty() {
                self.out.append(trial);
                return;
            }
        }
        if desired.len() <= live.len()
            && live.len() <= MAX_PAIRED
            && let Some((matched, inside)) = self.matching(items, desired, live)
        {
            self.out.append(inside);
            if desired.len() == live.len() {
                self.differ(Change::Order, Some(whole_desired), Some(whole_live));
                return;
            }
            for (at, found) in live.iter().enumerate() {
                if !matched.contains(&at) {
                    self.steps.push(Step::Item { desired: None, live: Some(at) });
                    self.differ(Change::Extra, None, Some(found));
                    self.steps.pop();
                }
            }
            return;
        }
        self.pairwise(items, desired, live);
    }

    fn pairwise(&mut self, items: Option<Schema<'a>>, desired: &'a [Value], live: &'a [Value]) {
        for at in 0..desired.len().max(live.len()) {
            let (wanted, found) = (desired.get(at), live.get(at));
            self.steps.push(Step::Item { desired: wanted.map(|_| at), live: found.map(|_| at) });
            match (wanted, found) {
                (Some(wanted), Some(found)) => self.place(items, wanted, found),
                (Some(wanted), None) => {
                    self.differ(Change::ItemMissing, Some(wanted), None);
                    self.scan(items, wanted);
                }
                (None, found) => self.differ(Change::Extra, None, found),
            }
            self.steps.pop();
        }
    }

    /// A live item for every desired one, each used once, and what is to be said of their insides.
    fn matching(
        &mut self,
        items: Option<Schema<'a>>,
        desired: &'a [Value],
        live: &'a [Value],
    ) -> Option<(Vec<usize>, Comparison<'a>)> {
        let mut matched = Vec::with_capacity(desired.len());
        let mut inside = Comparison::default();
        for (at, wanted) in desired.iter().enumerate() {
            let (place, trial) =
                live.iter().enumerate().filter(|(place, _)| !matched.contains(place)).find_map(
                    |(place, found)| {
                        let trial = self.trial(|walk| {
                            walk.steps.push(Step::Item { desired: Some(at), live: Some(place) });
                            walk.place(items, wanted, found);
                            walk.steps.pop();
                        });
                        trial.differences.is_empty().then_some((place, trial))
                    },
                )?;
            matched.push(place);
            inside.append(trial);
        }
        Some((matched, inside))
    }
}

/// The live item of each item of Git. Most lists are in Git's order.
fn pairs(fields: &KeyFields<'_>, desired: &[Value], live: &[Value]) -> Vec<Option<usize>> {
    let of_live = LazyCell::new(|| fields.positions(live));
    let pairs = desired.iter().enumerate().map(|(at, item)| {
        let key = fields.key(item);
        let guess = live.get(at).filter(|found| fields.key(found) == key).map(|_| at);
        guess.or_else(|| of_live.get(&key).copied())
    });
    pairs.collect()
}

/// Init containers run in order, mutating webhooks are called in order, of two lines for one host name the first one counts,
/// and a variable can use only those before it. Everywhere else the order of a keyed list means nothing.
fn order_matters(list: Option<Step<'_>>, desired: &[Value]) -> bool {
    match list {
        Some(Step::Field("hostAliases" | "initContainers" | "webhooks")) => true,
        Some(Step::Field("env")) => desired
            .iter()
            .any(|item| item.get("value").and_then(Value::as_str).is_some_and(|value| value.contains("$("))),
        Some(Step::Field(_) | Step::Item { .. }) | None => false,
    }
}
