//! Values of an evaluation. Parts of the object and literals are borrowed, so that reading a field copies nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::budget::{Budget, Flow, Stop};
use super::number::Number;

/// What an item of a list takes at least.
const ITEM: usize = 48;
/// What an entry of a map takes at least.
const ENTRY: usize = 96;

/// A value. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Val<'v> {
    Json(&'v Value),
    /// A key of the object.
    Key(&'v str),
    Null,
    Bool(bool),
    Number(Number),
    Text(Rc<str>),
    Array(Rc<Vec<Val<'v>>>),
    Object(Rc<BTreeMap<Rc<str>, Val<'v>>>),
}

/// A value by its type.
pub(super) enum View<'a, 'v> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'a str),
    Array(Items<'a, 'v>),
    Object(Entries<'a, 'v>),
}

/// The items of a list.
#[derive(Clone, Copy)]
pub(super) enum Items<'a, 'v> {
    Json(&'v [Value]),
    Built(&'a [Val<'v>]),
}

/// The entries of a map.
#[derive(Clone, Copy)]
pub(super) enum Entries<'a, 'v> {
    Json(&'v serde_json::Map<String, Value>),
    Built(&'a BTreeMap<Rc<str>, Val<'v>>),
}

impl<'v> Val<'v> {
    pub(super) fn view(&self) -> View<'_, 'v> {
        match self {
            Self::Json(Value::Null) | Self::Null => View::Null,
            Self::Json(Value::Bool(flag)) | Self::Bool(flag) => View::Bool(*flag),
            Self::Json(Value::Number(number)) => View::Number(Number::of_json(number)),
            Self::Json(Value::String(text)) => View::Text(text),
            Self::Json(Value::Array(items)) => View::Array(Items::Json(items)),
            Self::Json(Value::Object(map)) => View::Object(Entries::Json(map)),
            Self::Number(number) => View::Number(*number),
            Self::Key(text) => View::Text(text),
            Self::Text(text) => View::Text(text),
            Self::Array(items) => View::Array(Items::Built(items)),
            Self::Object(map) => View::Object(Entries::Built(map)),
        }
    }

    /// A list, charged.
    pub(super) fn array(items: Vec<Self>, budget: &Budget) -> Result<Self, Stop> {
        budget.build(items.len().saturating_mul(ITEM))?;
        Ok(Self::Array(Rc::new(items)))
    }

    /// A text, charged.
    pub(super) fn text(text: &str, budget: &Budget) -> Result<Self, Stop> {
        budget.build(text.len())?;
        Ok(Self::Text(text.into()))
    }

    /// A map, charged.
    pub(super) fn object(map: BTreeMap<Rc<str>, Self>, budget: &Budget) -> Result<Self, Stop> {
        budget.build(map.len().saturating_mul(ENTRY))?;
        Ok(Self::Object(Rc::new(map)))
    }

    pub(super) fn is_true(&self) -> bool {
        !matches!(self.view(), View::Null | View::Bool(false))
    }

    pub(super) fn as_text(&self) -> Result<&str, Stop> {
        match self.view() {
            View::Text(text) => Ok(text),
            _ => Err(Stop::Error),
        }
    }

    /// The children with their keys, in order.
    pub(super) fn each_child(&self, mut child: impl FnMut(Self, Self) -> Flow) -> Flow {
        match self.view() {
            View::Array(items) => (0..items.len()).try_for_each(|index| {
                child(Self::Number(Number::from(index)), items.get(index).unwrap_or(Self::Null))
            }),
            View::Object(Entries::Json(map)) => {
                map.iter().try_for_each(|(key, value)| child(Self::Key(key), Self::Json(value)))
            }
            View::Object(Entries::Built(map)) => {
                map.iter().try_for_each(|(key, value)| child(Self::Text(Rc::clone(key)), value.clone()))
            }
            View::Null | View::Bool(_) | View::Number(_) | View::Text(_) => Err(Stop::Error),
        }
    }

    /// The children in order.
    pub(super) fn each_value(&self, mut child: impl FnMut(Self) -> Flow) -> Flow {
        match self.view() {
            View::Object(Entries::Json(map)) => map.values().try_for_each(|value| child(Self::Json(value))),
            _ => self.each_child(|_, value| child(value)),
        }
    }

    /// `.[index]`; `None` if there is no such child.
    pub(super) fn find(&self, index: &Self, budget: &Budget) -> Result<Option<Self>, Stop> {
        match (self.view(), index.view()) {
            (View::Array(items), View::Number(Number::Int(index))) => {
                Ok(position(index, items.len()).and_then(|index| items.get(index)))
            }
            (View::Object(entries), View::Text(key)) => Ok(entries.get(key)),
            (View::Null | View::Object(_), _) => Ok(None),
            (View::Array(items), View::Array(parts)) => {
                let found = positions(items, parts, usize::MAX, budget)?;
                let found = found.into_iter().map(|at| Self::Number(at.into())).collect();
                Ok(Some(Self::array(found, budget)?))
            }
            (View::Array(_) | View::Text(_), View::Object(bounds)) => {
                self.slice(bounds.get("start").as_ref(), bounds.get("end").as_ref(), budget).map(Some)
            }
            _ => Err(Stop::Error),
        }
    }

    /// `.[from:to]`
    pub(super) fn slice(
        &self,
        from: Option<&Self>,
        to: Option<&Self>,
        budget: &Budget,
    ) -> Result<Self, Stop> {
        let bound = |bound: Option<&Self>, default: usize, len: usize| match bound.map(Self::view) {
            None | Some(View::Null) => Ok(default),
            Some(View::Number(Number::Int(index))) => Ok(clipped(index, len)),
            Some(_) => Err(Stop::Error),
        };
        match self.view() {
            View::Array(items) => {
                let len = items.len();
                let (from, to) = (bound(from, 0, len)?, bound(to, len, len)?);
                budget.build(to.saturating_sub(from).saturating_mul(ITEM))?;
                Ok(Self::Array(Rc::new((from..to).filter_map(|index| items.get(index)).collect())))
            }
            View::Text(text) => {
                budget.build(text.len())?;
                let len = text.chars().count();
                let (from, to) = (bound(from, 0, len)?, bound(to, len, len)?);
                let part: String = text.chars().skip(from).take(to.saturating_sub(from)).collect();
                Ok(Self::Text(part.into()))
            }
            _ => Err(Stop::Error),
        }
    }

    /// In the order of jq: null, booleans, numbers, texts, lists, maps.
    pub(super) fn compare(&self, other: &Self, budget: &Budget) -> Result<Ordering, Stop> {
        budget.steps(1)?;
        Ok(match (self.view(), other.view()) {
            (View::Bool(left), View::Bool(right)) => left.cmp(&right),
            (View::Number(left), View::Number(right)) => left.order(right),
            (View::Text(left), View::Text(right)) => {
                budget.look_at(left.len().min(right.len()))?;
                left.cmp(right)
            }
            (View::Array(left), View::Array(right)) => {
                for index in 0..left.len().min(right.len()) {
                    let (Some(left), Some(right)) = (left.get(index), right.get(index)) else { break };
                    let order = left.compare(&right, budget)?;
                    if order.is_ne() {
                        return Ok(order);
                    }
                }
                left.len().cmp(&right.len())
            }
            (View::Object(left), View::Object(right)) => compare_maps(left, right, budget)?,
            (left, right) => left.rank().cmp(&right.rank()),
        })
    }
}

/// Where the parts stand in a list one after the other, so many times at most.
pub(super) fn positions(
    items: Items<'_, '_>,
    parts: Items<'_, '_>,
    most: usize,
    budget: &Budget,
) -> Result<Vec<usize>, Stop> {
    let mut found = Vec::new();
    let last = items.len().checked_sub(parts.len()).filter(|_| parts.len() > 0);
    for start in last.into_iter().flat_map(|last| 0..=last) {
        let mut is_here = true;
        for offset in 0..parts.len() {
            let (Some(item), Some(part)) = (items.get(start + offset), parts.get(offset)) else { break };
            is_here = item.compare(&part, budget)?.is_eq();
            if !is_here {
                break;
            }
        }
        if is_here {
            budget.build(std::mem::size_of::<usize>())?;
            found.push(start);
            if found.len() == most {
                break;
            }
        }
    }
    Ok(found)
}

/// Keys first, then values.
fn compare_maps<'v>(
    left: Entries<'_, 'v>,
    right: Entries<'_, 'v>,
    budget: &Budget,
) -> Result<Ordering, Stop> {
    let (left, right) = (left.sorted(budget)?, right.sorted(budget)?);
    for ((left, _), (right, _)) in left.iter().zip(&right) {
        budget.look_at(left.len().min(right.len()))?;
        let order = left.cmp(right);
        if order.is_ne() {
            return Ok(order);
        }
    }
    if left.len() != right.len() {
        return Ok(left.len().cmp(&right.len()));
    }
    for ((_, left), (_, right)) in left.iter().zip(&right) {
        let order = left.compare(right, budget)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// The position that an index names, if the list has it. Negative ones count from the end.
fn position(index: i128, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i128::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

fn clipped(index: i128, len: usize) -> usize {
    let end = i128::try_from(len).unwrap_or(i128::MAX);
    let index = if index < 0 { index.saturating_add(end) } else { index };
    usize::try_from(index.clamp(0, end)).unwrap_or_default()
}

impl View<'_, '_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }
}

impl<'v> Items<'_, 'v> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Built(items) => items.len(),
        }
    }

    pub(super) fn get(self, index: usize) -> Option<Val<'v>> {
        match self {
            Self::Json(items) => items.get(index).map(Val::Json),
            Self::Built(items) => items.get(index).cloned(),
        }
    }

    /// A copy of the list, charged with room for so many more items.
    pub(super) fn copied(self, more: usize, budget: &Budget) -> Result<Vec<Val<'v>>, Stop> {
        budget.build(self.len().saturating_add(more).saturating_mul(ITEM))?;
        Ok((0..self.len()).filter_map(|index| self.get(index)).collect())
    }
}

impl<'a, 'v> Entries<'a, 'v> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Built(map) => map.len(),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<Val<'v>> {
        match self {
            Self::Json(map) => map.get(key).map(Val::Json),
            Self::Built(map) => map.get(key).cloned(),
        }
    }

    /// The entries by key, charged.
    pub(super) fn sorted(self, budget: &Budget) -> Result<Vec<(&'a str, Val<'v>)>, Stop>
    where
        'v: 'a,
    {
        budget.build(self.len().saturating_mul(ITEM))?;
        let mut entries: Vec<(&'a str, Val<'v>)> = match self {
            Self::Json(map) => map.iter().map(|(key, value)| (key.as_str(), Val::Json(value))).collect(),
            Self::Built(map) => map.iter().map(|(key, value)| (&**key, value.clone())).collect(),
        };
        entries.sort_by_key(|(key, _)| *key);
        Ok(entries)
    }

    /// A copy of the map, charged with room for so many more entries.
    pub(super) fn copied(self, more: usize, budget: &Budget) -> Result<BTreeMap<Rc<str>, Val<'v>>, Stop> {
        budget.build(self.len().saturating_add(more).saturating_mul(ENTRY))?;
        Ok(match self {
            Self::Json(map) => {
                map.iter().map(|(key, value)| (key.as_str().into(), Val::Json(value))).collect()
            }
            Self::Built(map) => map.clone(),
        })
    }
}
