//! Values with the types that they have in Go.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Zoned;
use serde_json::Value as Json;

use super::scope::Scope;
use crate::budget::Fault;
use plumb_core::version::Version;

/// Memory that an item of a list or a map takes, about.
const ITEM_BYTES: usize = 48;

/// A text. Go's strings are bytes: functions such as `trunc` cut a character in two.
pub type Text = Rc<[u8]>;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `nil`.
    Nil,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `int64`.
    Int64(i64),
    /// `uint64`.
    Uint64(u64),
    /// `uint8`: a byte of a string that was indexed.
    Byte(u8),
    /// `float64`.
    Float(f64),
    /// `string`.
    Text(Text),
    /// A slice.
    List(Rc<ListData>),
    /// A map with string keys.
    Map(Rc<MapData>),
    /// `time.Time`.
    Time(Rc<Zoned>),
    /// `time.Duration`, in nanoseconds.
    Duration(i64),
    /// `*semver.Version`.
    Version(Rc<Version>),
    /// `v1.JSON`: JSON that was not decoded. It prints as its bytes.
    Raw(Rc<str>),
}

/// The type of the items of a list, or of the values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// `interface {}`.
    Any,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `[]interface {}`.
    Lists,
    /// `v1.JSON`.
    Raw,
}

/// A list.
#[derive(Debug)]
pub struct ListData {
    /// The type of the items.
    pub of: Items,
    /// The items.
    pub items: Vec<Value>,
    /// A nil slice: it has no items, and is `null` in JSON.
    pub is_nil: bool,
}

/// A map. `set` and `unset` change it in place, for all who hold it.
#[derive(Debug)]
pub struct MapData {
    /// The type of the values.
    pub of: Items,
    entries: RefCell<BTreeMap<String, Value>>,
}

impl MapData {
    /// The entries, sorted by key.
    pub fn entries(&self) -> Ref<'_, BTreeMap<String, Value>> {
        self.entries.borrow()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    /// Sets a key.
    pub fn set(&self, key: String, value: Value) {
        self.entries.borrow_mut().insert(key, value);
    }

    /// Removes a key.
    pub fn unset(&self, key: &str) {
        self.entries.borrow_mut().remove(key);
    }

    pub(super) fn clear(&self) {
        // The values are dropped after the borrow ends.
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        drop(entries);
    }
}

impl Value {
    /// A string.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(Rc::from(text.as_ref()))
    }

    /// A list of any values.
    pub fn list(scope: &Scope, items: Vec<Self>) -> Result<Self, Fault> {
        Self::list_of(scope, Items::Any, items)
    }

    /// A list of values of one type.
    pub fn list_of(scope: &Scope, of: Items, items: Vec<Self>) -> Result<Self, Fault> {
        scope.step(items.len())?;
        scope.allocate((items.len() + 1) * ITEM_BYTES)?;
        let list = Rc::new(ListData { of, items, is_nil: false });
        scope.remember_list(&list);
        Ok(Self::List(list))
    }

    /// A nil slice.
    pub fn nil_list(scope: &Scope, of: Items) -> Self {
        let list = Rc::new(ListData { of, items: Vec::new(), is_nil: true });
        scope.remember_list(&list);
        Self::List(list)
    }

    /// A list of strings.
    pub fn texts<T: AsRef<[u8]>>(scope: &Scope, items: impl IntoIterator<Item = T>) -> Result<Self, Fault> {
        Self::list_of(scope, Items::Text, items.into_iter().map(Self::text).collect())
    }

    /// A map of any values.
    pub fn map(scope: &Scope, entries: BTreeMap<String, Self>) -> Result<Self, Fault> {
        Self::map_of(scope, Items::Any, entries)
    }

    /// A map of values of one type.
    pub fn map_of(scope: &Scope, of: Items, entries: BTreeMap<String, Self>) -> Result<Self, Fault> {
        scope.step(entries.len())?;
        let keys: usize = entries.keys().map(String::len).sum();
        scope.allocate((entries.len() + 1) * 2 * ITEM_BYTES + keys)?;
        let map = Rc::new(MapData { of, entries: RefCell::new(entries) });
        scope.remember_map(&map);
        Ok(Self::Map(map))
    }

    /// JSON as Go decodes it: every number is a `float64`.
    pub fn from_json(scope: &Scope, json: &Json) -> Result<Self, Fault> {
        Ok(match json {
            Json::Null => Self::Nil,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => {
                scope.allocate(text.len())?;
                Self::text(text)
            }
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::from_json(scope, item));
                Self::list(scope, items.collect::<Result<_, _>>()?)?
            }
            Json::Object(map) => {
                let entries =
                    map.iter().map(|(key, value)| Ok((key.clone(), Self::from_json(scope, value)?)));
                Self::map(scope, entries.collect::<Result<_, Fault>>()?)?
            }
        })
    }

    /// The name of the type, such as `map[string]interface {}`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Uint64(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(list) => match list.of {
                Items::Any => "[]interface {}",
                Items::Text => "[]string",
                Items::Int => "[]int",
                Items::Lists => "[][]interface {}",
                Items::Raw => "[]v1.JSON",
            },
            Self::Map(map) => match map.of {
                Items::Text => "map[string]string",
                Items::Raw => "map[string]v1.JSON",
                Items::Any | Items::Int | Items::Lists => "map[string]interface {}",
            },
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::Version(_) => "*semver.Version",
            Self::Raw(_) => "v1.JSON",
        }
    }

    /// The kind of the type, such as `map`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) | Self::Duration(_) => "int64",
            Self::Uint64(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Time(_) | Self::Raw(_) => "struct",
            Self::Version(_) => "ptr",
        }
    }

    /// Go's truth: false is the zero value of a type, and what has no length.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(truth) => *truth,
            Self::Int(number) | Self::Int64(number) | Self::Duration(number) => *number != 0,
            Self::Uint64(number) => *number != 0,
            Self::Byte(byte) => *byte != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries().is_empty(),
            Self::Time(_) | Self::Version(_) | Self::Raw(_) => true,
        }
    }

    /// The string, with invalid UTF-8 replaced.
    pub fn to_str(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(String::from_utf8_lossy(text)),
            Self::Nil
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Int64(_)
            | Self::Uint64(_)
            | Self::Byte(_)
            | Self::Float(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Time(_)
            | Self::Duration(_)
            | Self::Version(_)
            | Self::Raw(_) => None,
        }
    }

    /// The number, if it is of an integer type.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Int(number) | Self::Int64(number) | Self::Duration(number) => Some(i128::from(*number)),
            Self::Uint64(number) => Some(i128::from(*number)),
            Self::Byte(byte) => Some(i128::from(*byte)),
            Self::Nil
            | Self::Bool(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Time(_)
            | Self::Version(_)
            | Self::Raw(_) => None,
        }
    }
}
