//! The typed walk of what Git asks over what the cluster holds.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::item_keys::names_twice;
use super::value::{Relation, is_zero, relate};
use super::{Addition, Change, Comparison, Difference, Fill, Forgiven, Reason};
use crate::normalize::is_kept_metadata;
use crate::object::{FieldPath, Segment};
use crate::schema::{Field, KindSchema, ListType, Schema, ServerFill, Shape};

/// One step of the walk. A list item may have different indexes on the two sides.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Field(&'a str),
    Item { desired: Option<usize>, live: Option<usize> },
}

/// Which fields of the root are not walked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aside {
    /// `status` is the server's.
    pub status: bool,
}

pub(super) struct Walk<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// Depth of the innermost place that is replaced as a whole, if we are inside one.
    pub(super) atomic: Option<usize>,
    /// Are we inside a map that is replaced as a whole?
    in_whole_map: bool,
    built_in: bool,
    kind: Option<KindSchema<'a>>,
    pub(super) out: Comparison<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(built_in: bool, kind: Option<KindSchema<'a>>) -> Self {
        Self {
            steps: Vec::new(),
            atomic: None,
            in_whole_map: false,
            built_in,
            kind,
            out: Comparison::default(),
        }
    }

    pub(super) fn finish(self) -> Comparison<'a> {
        self.out
    }

    /// The whole object: identity is settled, server-kept metadata and `status` are put aside.
    pub(super) fn root(
        &mut self,
        schema: Option<Schema<'a>>,
        desired: &'a Value,
        live: &'a Value,
        aside: Aside,
    ) {
        let empty: &'static Map<String, Value> = &EMPTY;
        let desired = desired.as_object().unwrap_or(empty);
        let live = live.as_object().unwrap_or(empty);
        let skipped = |name: &str| {
            matches!(name, "apiVersion" | "kind" | "metadata") || (name == "status" && aside.status)
        };
        self.fields(schema, desired, live, skipped);
        let desired = desired.get("metadata").and_then(Value::as_object).unwrap_or(empty);
        let live = live.get("metadata").and_then(Value::as_object).unwrap_or(empty);
        self.steps.push(Step::Field("metadata"));
        self.fields(known(schema, "metadata"), desired, live, |name| {
            is_kept_metadata(name) || matches!(name, "name" | "namespace" | "generateName")
        });
        self.steps.pop();
    }

    fn fields(
        &mut self,
        schema: Option<Schema<'a>>,
        desired: &'a Map<String, Value>,
        live: &'a Map<String, Value>,
        skipped: impl Fn(&str) -> bool,
    ) {
        for (name, wanted, found) in both(desired, live) {
            if skipped(name) {
                continue;
            }
            self.steps.push(Step::Field(name));
            let found = found.filter(|found| !found.is_null());
            match (wanted, found) {
                (Some(wanted), found) if !wanted.is_null() => self.field(schema, name, wanted, found),
                (wanted, found) => {
                    if wanted.is_some() {
                        self.null(found);
                    }
                    if let Some(found) = found {
                        self.added_field(schema, name, found, live);
                    }
                }
            }
            self.steps.pop();
        }
    }

    /// A field that Git sets.
    fn field(&mut self, parent: Option<Schema<'a>>, name: &str, wanted: &'a Value, found: Option<&'a Value>) {
        let field = parent.map(|parent| parent.field(name));
        let schema = match field {
            Some(Field::Known(schema)) => Some(schema),
            Some(Field::Open | Field::Unknown) | None => None,
        };
        match (field, found) {
            (_, Some(found)) => self.place(schema, wanted, found),
            // What the server stored it also knows, whatever an older document says.
            (Some(Field::Unknown), None) => self.unknown(parent, name),
            (_, None) => self.missing(schema, wanted, parent.is_some_and(Schema::is_free_map)),
        }
    }

    /// Git writes null: the same as leaving it out.
    fn null(&mut self, found: Option<&'a Value>) {
        // Generators write `creationTimestamp: null` everywhere; it is not worth reporting.
        if !matches!(self.steps.last(), Some(Step::Field("creationTimestamp"))) {
            self.forgive(Reason::Null, None, found);
        }
    }

    pub(super) fn place(&mut self, schema: Option<Schema<'a>>, desired: &'a Value, live: &'a Value) {
        match (desired, live) {
            (Value::Object(wanted), Value::Object(found)) => {
                let atomic = matches!(schema.map(Schema::shape), Some(Shape::Map { atomic: true }));
                let outer = self.in_whole_map;
                self.in_whole_map |= atomic;
                self.inside(atomic, |walk| walk.fields(schema, wanted, found, |_| false));
                self.in_whole_map = outer;
            }
            (Value::Array(wanted), Value::Array(found)) => self.list(schema, desired, live, wanted, found),
            _ => {
                let scalar = match schema.map(Schema::shape) {
                    Some(Shape::Scalar(scalar)) => Some(scalar),
                    Some(Shape::Any | Shape::Map { .. } | Shape::List { .. }) | None => None,
                };
                let relation = match relate(desired, live, scalar, self.built_in) {
                    Relation::Different => self.relate_by_settings(desired, live),
                    relation @ (Relation::Same | Relation::Respelled(_)) => relation,
                };
                match relation {
                    Relation::Same => {}
                    Relation::Respelled(spelling) => {
                        self.forgive(Reason::Spelling(spelling), Some(desired), Some(live));
                    }
                    Relation::Different => self.differ(Change::Value, Some(desired), Some(live)),
                }
            }
        }
    }

    /// Two values that the server considers different; the settings may say that they are equal.
    fn relate_by_settings(&self, desired: &Value, live: &Value) -> Relation {
        let Some(kind) = self.kind.filter(|_| !self.built_in) else { return Relation::Different };
        let fields = self.steps.iter().filter_map(|step| match step {
            Step::Field(name) => Some(*name),
            Step::Item { .. } => None,
        });
        let known = kind.known_scalar(&fields.collect::<Vec<_>>());
        known.map_or(Relation::Different, |scalar| relate(desired, live, Some(scalar), true))
    }

    /// Runs `walk` inside a place that is replaced as a whole, if it is one.
    pub(super) fn inside(&mut self, atomic: bool, walk: impl FnOnce(&mut Self)) {
        let outer = self.atomic;
        if atomic && outer.is_none() {
            self.atomic = Some(self.steps.len());
        }
        walk(self);
        self.atomic = outer;
    }

    /// Walks on the side; what it finds is returned instead of kept.
    pub(super) fn trial(&mut self, walk: impl FnOnce(&mut Self)) -> Comparison<'a> {
        let kept = std::mem::take(&mut self.out);
        walk(self);
        std::mem::replace(&mut self.out, kept)
    }

    /// Git sets it, the cluster lacks it. Maps are followed to their leaves.
    fn missing(&mut self, schema: Option<Schema<'a>>, desired: &'a Value, in_free_map: bool) {
        let is_default = schema.and_then(Schema::default).is_some_and(|default| default == desired);
        if !in_free_map && self.atomic.is_none() && is_keyed(schema) && is_zero(desired) {
            self.forgive(Reason::NoItems, Some(desired), None);
            return;
        }
        if !in_free_map && (is_zero(desired) || is_default) && !self.is_chosen(schema, desired) {
            self.forgive(Reason::Zero, Some(desired), None);
            return;
        }
        if is_zero(desired) {
            self.differ(Change::Missing, Some(desired), None);
            return;
        }
        let Value::Object(fields) = desired else {
            self.differ(Change::Missing, Some(desired), None);
            self.scan(schema, desired);
            return;
        };
        let keys_are_free = schema.is_some_and(Schema::is_free_map);
        for (name, wanted) in fields {
            self.steps.push(Step::Field(name));
            match schema.map(|schema| schema.field(name)) {
                Some(Field::Unknown) if !wanted.is_null() => self.unknown(schema, name),
                field => {
                    let schema = match field {
                        Some(Field::Known(schema)) => Some(schema),
                        Some(Field::Open | Field::Unknown) | None => None,
                    };
                    if wanted.is_null() {
                        self.forgive(Reason::Null, None, None);
                    } else {
                        self.missing(schema, wanted, keys_are_free);
                    }
                }
            }
            self.steps.pop();
        }
    }

    /// An empty map of declared fields is a choice (`emptyDir: {}`), and the Go types of operators keep it: they
    /// are pointers. A map of free keys (`labels: {}`) is dropped when it is empty.
    fn is_chosen(&self, schema: Option<Schema<'a>>, desired: &Value) -> bool {
        !self.built_in
            && desired.is_object()
            && !schema.is_some_and(|schema| schema.is_free_map() || schema.default() == Some(desired))
    }

    /// Looks for mistakes in what the cluster lacks as a whole: unknown fields, items named twice.
    pub(super) fn scan(&mut self, schema: Option<Schema<'a>>, desired: &'a Value) {
        let Some(schema) = schema else { return };
        match desired {
            Value::Object(fields) => {
                for (name, wanted) in fields.iter().filter(|(_, wanted)| !wanted.is_null()) {
                    self.steps.push(Step::Field(name));
                    match schema.field(name) {
                        Field::Known(schema) => self.scan(Some(schema), wanted),
                        Field::Unknown => self.unknown(Some(schema), name),
                        Field::Open => {}
                    }
                    self.steps.pop();
                }
            }
            Value::Array(wanted) => {
                let Shape::List { items, list_type } = schema.shape() else { return };
                if names_twice(list_type, items, wanted) {
                    self.out.duplicates.push(self.path(Side::Desired));
                }
                for (at, item) in wanted.iter().enumerate() {
                    self.steps.push(Step::Item { desired: Some(at), live: None });
                    self.scan(Some(items), item);
                    self.steps.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The cluster has a field that Git does not mention.
    fn added_field(
        &mut self,
        parent: Option<Schema<'a>>,
        name: &'a str,
        found: &'a Value,
        siblings: &'a Map<String, Value>,
    ) {
        let schema = known(parent, name);
        let fill = fill_of(parent, schema, name, found, siblings);
        if fill != Fill::None {
            self.add(found, fill, false);
            return;
        }
        match found {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, found) in fields {
                    self.steps.push(Step::Field(name));
                    self.added_field(schema, name, found, fields);
                    self.steps.pop();
                }
            }
            Value::Array(items) if self.atomic.is_none() && is_keyed(schema) => {
                for (at, found) in items.iter().enumerate() {
                    self.steps.push(Step::Item { desired: None, live: Some(at) });
                    self.add(found, Fill::None, true);
                    self.steps.pop();
                }
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => self.add(found, Fill::None, false),
        }
    }

    pub(super) fn add(&mut self, live: &'a Value, fill: Fill, is_item: bool) {
        let (path, whole) = (self.path(Side::Live), self.whole());
        let in_whole_map = self.in_whole_map;
        self.out.additions.push(Addition { path, whole, live, fill, is_item, in_whole_map });
    }

    pub(super) fn differ(&mut self, change: Change, desired: Option<&'a Value>, live: Option<&'a Value>) {
        let difference = Difference {
            path: self.path(Side::Live),
            desired_path: self.path(Side::Desired),
            whole: self.whole(),
            change,
            desired,
            live,
        };
        self.out.differences.push(difference);
    }

    pub(super) fn forgive(&mut self, reason: Reason, desired: Option<&'a Value>, live: Option<&'a Value>) {
        self.out.forgiven.push(Forgiven {
            path: self.path(Side::Live),
            desired_path: self.path(Side::Desired),
            whole: self.whole(),
            reason,
            desired,
            live,
        });
    }

    fn unknown(&mut self, parent: Option<Schema<'a>>, name: &str) {
        let nearest =
            parent.and_then(|parent| super::nearest::nearest(name, parent.fields().map(|(name, _)| name)));
        self.out.unknown.push((self.path(Side::Desired), nearest));
    }

    fn whole(&self) -> Option<FieldPath> {
        let depth = self.atomic?;
        Some(path_of(self.steps.get(..depth)?, Side::Live))
    }

    pub(super) fn path(&self, side: Side) -> FieldPath {
        path_of(&self.steps, side)
    }
}

/// Whose position a list item is named by; the other's where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Live,
    Desired,
}

fn path_of(steps: &[Step<'_>], side: Side) -> FieldPath {
    let segments: Vec<Segment> = steps
        .iter()
        .map(|step| match *step {
            Step::Field(name) => Segment::Field(name.into()),
            Step::Item { desired, live } => {
                let (first, second) = match side {
                    Side::Live => (live, desired),
                    Side::Desired => (desired, live),
                };
                Segment::Index(first.or(second).unwrap_or_default())
            }
        })
        .collect();
    FieldPath::from(segments)
}

/// The keys of two maps with their values, in order. Both are sorted, so one pass over both will do.
fn both<'a>(
    one: &'a Map<String, Value>,
    other: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (one.peek(), other.peek()) {
            (Some((one, _)), Some((other, _))) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let left = if order.is_le() { one.next() } else { None };
        let right = if order.is_ge() { other.next() } else { None };
        let (name, _) = left.or(right)?;
        Some((name.as_str(), left.map(|(_, value)| value), right.map(|(_, value)| value)))
    })
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

pub(super) fn known<'a>(schema: Option<Schema<'a>>, name: &str) -> Option<Schema<'a>> {
    schema?.known(name)
}

fn is_keyed(schema: Option<Schema<'_>>) -> bool {
    matches!(schema.map(Schema::shape), Some(Shape::List { list_type: ListType::Map(_) | ListType::Set, .. }))
}

/// Is this live value what the server fills in when nothing is written?
fn fill_of(
    parent: Option<Schema<'_>>,
    schema: Option<Schema<'_>>,
    name: &str,
    found: &Value,
    siblings: &Map<String, Value>,
) -> Fill {
    if let Some(default) = schema.and_then(Schema::default)
        && (default == found || is_defaulted_map(schema, default, found))
    {
        return Fill::Schema;
    }
    match parent.and_then(|parent| parent.server_fill(name, found, siblings)) {
        Some(ServerFill::Default) => Fill::BuiltIn,
        Some(ServerFill::Allocated) => Fill::Allocated,
        None => Fill::None,
    }
}

/// A map default (`{}`) whose fields were filled with their own defaults in turn.
fn is_defaulted_map(schema: Option<Schema<'_>>, default: &Value, found: &Value) -> bool {
    let (Value::Object(default), Value::Object(found)) = (default, found) else { return false };
    found.iter().all(|(name, value)| {
        default.get(name) == Some(value)
            || known(schema, name).is_some_and(|schema| {
                schema
                    .default()
                    .is_some_and(|inner| inner == value || is_defaulted_map(Some(schema), inner, value))
            })
    })
}
