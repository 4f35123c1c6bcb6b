//! The result of comparing two objects.

use serde_json::Value;

use super::walk::Walk;
use super::{Aside, Spelling};
use crate::object::{FieldPath, Manifest};
use crate::schema::{KindSchema, Schema};

/// Everything that a walk found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison<'a> {
    /// Fields that Git sets and the cluster does not satisfy.
    pub differences: Vec<Difference<'a>>,
    /// Fields and items that Git does not mention.
    pub additions: Vec<Addition<'a>>,
    /// Differences of bytes that mean the same.
    pub forgiven: Vec<Forgiven<'a>>,
    /// Fields in Git that the schema does not have, with the known name that comes nearest.
    pub unknown: Vec<(FieldPath, Option<String>)>,
    /// Keyed lists in Git that name an item twice.
    pub duplicates: Vec<FieldPath>,
}

/// A field that Git sets and the cluster does not satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference<'a> {
    /// Where in the live object (in Git's, where the live object lacks it).
    pub path: FieldPath,
    /// Where in Git's object.
    pub desired_path: FieldPath,
    /// The list or map around it that is replaced as a whole, if any.
    pub whole: Option<FieldPath>,
    /// In what way.
    pub change: Change,
    /// Git's value.
    pub desired: Option<&'a Value>,
    /// The cluster's value.
    pub live: Option<&'a Value>,
}

/// In what way a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another value.
    Value,
    /// The cluster lacks the field.
    Missing,
    /// The cluster lacks the list item.
    ItemMissing,
    /// An item too many in a list that is replaced as a whole, or a second one of a name in a list with keys.
    Extra,
    /// The same items in another order, where order matters.
    Order,
}

/// Something that Git does not mention.
#[derive(Clone, Debug, PartialEq)]
pub struct Addition<'a> {
    /// Where in the live object.
    pub path: FieldPath,
    /// The list or map around it that is replaced as a whole, if any.
    pub whole: Option<FieldPath>,
    /// Its value.
    pub live: &'a Value,
    /// Is it what the server fills in?
    pub fill: Fill,
    /// Is it a list item?
    pub is_item: bool,
    /// Is it inside a map that is one value, such as a selector? One more key changes its meaning.
    pub in_whole_map: bool,
}

/// Whether the server fills in this value by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Not that we know.
    None,
    /// The schema's default.
    Schema,
    /// A default of a built-in kind.
    BuiltIn,
    /// A built-in kind's field that the server fills with a value of its choice if it is unset.
    Allocated,
}

/// A difference of bytes that means the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Forgiven<'a> {
    /// Where in the live object (in Git's, where the live object lacks it).
    pub path: FieldPath,
    /// Where in Git's object.
    pub desired_path: FieldPath,
    /// The list or map around it that is replaced as a whole, if any.
    pub whole: Option<FieldPath>,
    /// Why it is forgiven.
    pub reason: Reason,
    /// Git's value.
    pub desired: Option<&'a Value>,
    /// The cluster's value.
    pub live: Option<&'a Value>,
}

/// Why a difference of bytes is forgiven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another spelling.
    Spelling(Spelling),
    /// Git writes null.
    Null,
    /// Git spells out a zero value or default, the cluster lacks the field.
    Zero,
    /// Git writes an empty list that is merged item by item, and so asks for nothing; the cluster lacks the field.
    NoItems,
}

impl Comparison<'_> {
    /// Are both sides equal, apart from fields that only the server sets?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.differences.append(&mut other.differences);
        self.additions.append(&mut other.additions);
        self.forgiven.append(&mut other.forgiven);
        self.unknown.append(&mut other.unknown);
        self.duplicates.append(&mut other.duplicates);
    }
}

/// Walks `desired` over `live`. Without a schema maps are walked field by field and lists as a whole, as the
/// server does.
pub fn compare<'a>(
    desired: &'a Manifest,
    live: &'a Manifest,
    kind: Option<KindSchema<'a>>,
    aside: Aside,
) -> Comparison<'a> {
    let root = kind.map(|kind| kind.root);
    let built_in = root.and_then(Schema::type_name).is_some_and(|name| name.starts_with("io.k8s."));
    let mut walk = Walk::new(built_in, kind);
    walk.root(root, desired.value(), live.value(), aside);
    walk.finish()
}
