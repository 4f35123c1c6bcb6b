//! Finds the subtree of a list item in an entry of `managedFields` without reading all its path elements each time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value};

/// Lists with fewer elements are searched.
const SHORT: usize = 32;

/// The API server names all items of a list by the same fields, at most a handful. An entry that a client wrote with more is
/// not understood: its items have no owner.
const MOST_KEY_SETS: usize = 8;
const MOST_KEYS: usize = 8;

/// The indexes of all long lists of one entry, made when the first of them is needed.
#[derive(Clone, Default)]
pub(super) struct ListIndexes<'a>(Arc<OnceLock<HashMap<usize, ListIndex<'a>>>>);

impl fmt::Debug for ListIndexes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListIndexes").finish_non_exhaustive()
    }
}

impl<'a> ListIndexes<'a> {
    /// The index of a list, whose elements are `list`, in the tree `root`. `None` if it is short.
    pub(super) fn of(
        &self,
        root: &'a Map<String, Value>,
        list: &'a Map<String, Value>,
    ) -> Option<&ListIndex<'a>> {
        if list.len() <= SHORT {
            return None;
        }
        let all = self.0.get_or_init(|| {
            let mut all = HashMap::new();
            add_indexes(root, &mut all);
            all
        });
        all.get(&address(list))
    }
}

fn address(list: &Map<String, Value>) -> usize {
    std::ptr::from_ref(list).addr()
}

fn add_indexes<'a>(fields: &'a Map<String, Value>, all: &mut HashMap<usize, ListIndex<'a>>) {
    if fields.len() > SHORT {
        all.insert(address(fields), ListIndex::of(fields));
    }
    for child in fields.values().filter_map(Value::as_object).filter(|child| !child.is_empty()) {
        add_indexes(child, all);
    }
}

/// The elements of one list (`k:{"name":"c"}`, `v:"a"`, `i:0`), by what they say. Of several that mean an item, the first one
/// counts.
pub(super) struct ListIndex<'a> {
    subtrees: Vec<&'a Value>,
    /// The fields by which elements name items: usually one set.
    key_sets: Vec<KeySet>,
    /// The first element whose keys are all empty texts. It means an item without fields.
    bare: Option<usize>,
    by_value: HashMap<String, usize>,
    by_position: HashMap<usize, usize>,
}

struct KeySet {
    names: Vec<String>,
    /// The values of the names, and the position of the element.
    elements: Vec<(Vec<String>, usize)>,
    /// For the names that an item has: the values, to the first element. A key that the item lacks may have its default.
    by_names: Mutex<HashMap<u8, HashMap<Vec<String>, usize>>>,
}

impl<'a> ListIndex<'a> {
    fn of(fields: &'a Map<String, Value>) -> Self {
        let mut index = Self {
            subtrees: Vec::with_capacity(fields.len()),
            key_sets: Vec::new(),
            bare: None,
            by_value: HashMap::new(),
            by_position: HashMap::new(),
        };
        for (at, (element, subtree)) in fields.iter().enumerate() {
            index.subtrees.push(subtree);
            if let Some(keys) = element.strip_prefix("k:") {
                if let Ok(Value::Object(keys)) = serde_json::from_str::<Value>(keys) {
                    index.add_keys(&keys, at);
                }
            } else if let Some(value) = element.strip_prefix("v:") {
                if let Ok(value) = serde_json::from_str::<Value>(value) {
                    index.by_value.entry(value.to_string()).or_insert(at);
                }
            } else if let Some(position) = element.strip_prefix("i:").and_then(|text| text.parse().ok()) {
                index.by_position.entry(position).or_insert(at);
            }
        }
        index
    }

    fn add_keys(&mut self, keys: &Map<String, Value>, at: usize) {
        if keys.values().all(|key| key == "") {
            self.bare.get_or_insert(at);
        }
        let element = (keys.values().map(Value::to_string).collect(), at);
        let known = self.key_sets.iter_mut().find(|set| set.names.iter().eq(keys.keys()));
        if let Some(set) = known {
            set.elements.push(element);
        } else if self.key_sets.len() < MOST_KEY_SETS && keys.len() <= MOST_KEYS {
            let names = keys.keys().cloned().collect();
            self.key_sets.push(KeySet { names, elements: vec![element], by_names: Mutex::default() });
        }
    }

    /// The subtree of the item.
    pub(super) fn find(&self, item: &Value, position: usize) -> Option<&'a Value> {
        let is_bare = item.as_object().is_some_and(Map::is_empty);
        let by_keys = self.key_sets.iter().filter_map(|set| set.find(item));
        let others = [
            self.bare.filter(|_| is_bare),
            self.by_position.get(&position).copied(),
            (!self.by_value.is_empty()).then(|| self.by_value.get(&item.to_string()).copied()).flatten(),
        ];
        let at = by_keys.chain(others.into_iter().flatten()).min()?;
        self.subtrees.get(at).copied()
    }
}

impl KeySet {
    /// The first element that names the item.
    fn find(&self, item: &Value) -> Option<usize> {
        let mut mask = 0u8;
        let mut values = Vec::with_capacity(self.names.len());
        for (bit, name) in self.names.iter().enumerate() {
            if let Some(value) = item.get(name) {
                mask |= 1 << bit;
                values.push(value.to_string());
            }
        }
        if mask == 0 {
            return None;
        }
        let mut by_names = self.by_names.lock().unwrap_or_else(PoisonError::into_inner);
        let elements = by_names.entry(mask).or_insert_with(|| {
            let mut elements = HashMap::with_capacity(self.elements.len());
            for (values, at) in &self.elements {
                let has = |bit: &usize| mask & (1 << bit) != 0;
                let values = values.iter().enumerate().filter(|(bit, _)| has(bit));
                elements.entry(values.map(|(_, value)| value.clone()).collect()).or_insert(*at);
            }
            elements
        });
        elements.get(&values).copied()
    }
}
