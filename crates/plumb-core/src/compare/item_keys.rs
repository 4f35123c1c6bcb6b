//! The keys of list items, to find items without a search through the list.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::walk::known;
use crate::schema::{ListType, Schema};

/// In lists up to this length a search costs less than an index.
const SHORT: usize = 16;

/// The fields that identify the items of a list, with their defaults.
pub(super) struct KeyFields<'a>(Vec<(&'a str, Option<&'a Value>)>);

/// What identifies one item. A key that is left out has its default.
pub(super) type ItemKey<'v> = Vec<Option<&'v Value>>;

impl<'a> KeyFields<'a> {
    pub(super) fn of(keys: &'a [String], items: Schema<'a>) -> Self {
        let default = |name: &str| known(Some(items), name).and_then(Schema::default);
        Self(keys.iter().map(|name| (name.as_str(), default(name))).collect())
    }

    pub(super) fn key<'v>(&self, item: &'v Value) -> ItemKey<'v>
    where
        'a: 'v,
    {
        self.0.iter().map(|(name, default)| item.get(name).or(*default)).collect()
    }

    /// The first item of each key.
    pub(super) fn positions<'v>(&self, items: &'v [Value]) -> HashMap<ItemKey<'v>, usize>
    where
        'a: 'v,
    {
        let mut positions = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            positions.entry(self.key(item)).or_insert(at);
        }
        positions
    }

    /// Does an item come twice?
    pub(super) fn has_twice(&self, items: &[Value]) -> bool {
        has_twice(items, |item| self.key(item))
    }
}

/// Does Git name an item twice, where the server refuses that?
pub(super) fn names_twice(list_type: &ListType, items: Schema<'_>, desired: &[Value]) -> bool {
    match list_type {
        ListType::Map(keys) => desired.len() > 1 && KeyFields::of(keys, items).has_twice(desired),
        ListType::Set => is_twice_in_set(desired),
        ListType::Atomic => false,
    }
}

/// Does a value come twice?
pub(super) fn is_twice_in_set(items: &[Value]) -> bool {
    has_twice(items, |item| item)
}

fn has_twice<'v, K: std::hash::Hash + Eq>(items: &'v [Value], key: impl Fn(&'v Value) -> K) -> bool {
    if items.len() <= SHORT {
        let keys: Vec<K> = items.iter().map(key).collect();
        return keys.iter().enumerate().any(|(at, item)| keys.iter().take(at).any(|other| other == item));
    }
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().any(|item| !seen.insert(key(item)))
}

/// The values of a list that is a set.
pub(super) enum Members<'v> {
    Few(&'v [Value]),
    Many(HashSet<&'v Value>),
}

impl<'v> Members<'v> {
    pub(super) fn of(items: &'v [Value]) -> Self {
        if items.len() <= SHORT { Self::Few(items) } else { Self::Many(items.iter().collect()) }
    }

    pub(super) fn contains(&self, item: &Value) -> bool {
        match self {
            Self::Few(items) => items.contains(item),
            Self::Many(items) => items.contains(item),
        }
    }
}
