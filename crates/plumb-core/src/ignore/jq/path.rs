//! Where an output is in the object.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::budget::{Budget, Limit, Stop};
use super::number::Number;
use super::value::{Val, View};
use crate::object::{FieldPath, Segment};

/// Longest path that an expression may build. Releasing a path takes native stack.
pub(super) const LONGEST_PATH: usize = 500;

/// A path, from its end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'v>(Option<Rc<Node<'v>>>);

#[derive(Debug)]
struct Node<'v> {
    last: Val<'v>,
    len: usize,
    before: Path<'v>,
}

impl<'v> Path<'v> {
    pub(super) fn join(&self, segment: Val<'v>, budget: &Budget) -> Result<Self, Stop> {
        let len = 1 + self.0.as_ref().map_or(0, |node| node.len);
        if len > LONGEST_PATH {
            return Err(Stop::Limit(Limit::PathLength));
        }
        budget.steps(1)?;
        Ok(Self(Some(Rc::new(Node { last: segment, len, before: self.clone() }))))
    }

    /// The segments from the root.
    pub(super) fn segments(&self) -> Vec<Val<'v>> {
        let mut segments = Vec::new();
        let mut rest = self;
        while let Some(node) = &rest.0 {
            segments.push(node.last.clone());
            rest = &node.before;
        }
        segments.reverse();
        segments
    }

    /// The place; `None` if it is not a place of an object, such as a slice.
    pub(super) fn place(&self) -> Option<FieldPath> {
        let segments = self.segments();
        let segments: Option<Vec<Segment>> = segments.iter().map(segment).collect();
        segments.map(FieldPath::from)
    }
}

fn segment(segment: &Val<'_>) -> Option<Segment> {
    match segment.view() {
        View::Text(text) => Some(Segment::Field(text.into())),
        View::Number(Number::Int(index)) => usize::try_from(index).ok().map(Segment::Index),
        _ => None,
    }
}

/// The segment of a slice.
pub(super) fn slice_segment<'v>(from: Option<&Val<'v>>, to: Option<&Val<'v>>) -> Val<'v> {
    let bounds = [("start", from), ("end", to)];
    let bounds = bounds.into_iter().filter_map(|(name, bound)| Some((name.into(), bound?.clone())));
    Val::Object(Rc::new(bounds.collect::<BTreeMap<Rc<str>, Val<'v>>>()))
}
