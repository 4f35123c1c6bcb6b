//! A set of places that is asked often.

use std::collections::HashMap;

use compact_str::CompactString;

use crate::object::{FieldPath, Segment};

/// So few places are looked at one by one.
const FEW: usize = 8;

/// Places, and whether another place is one of them or inside one. The effort does not grow with their number.
#[derive(Debug)]
pub(crate) enum PlaceSet {
    /// Looked at one by one.
    Few(Vec<FieldPath>),
    /// A tree; the first node is the root.
    Many(Vec<Node>),
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    is_place: bool,
    fields: HashMap<CompactString, usize>,
    indexes: HashMap<usize, usize>,
    /// Fields that are digits, which name a position in a list as well.
    digits: HashMap<usize, Vec<usize>>,
}

impl PlaceSet {
    pub(crate) fn new(places: &[FieldPath]) -> Self {
        if places.len() <= FEW {
            return Self::Few(places.to_vec());
        }
        let mut nodes = vec![Node::default()];
        for place in places {
            insert(&mut nodes, place);
        }
        Self::Many(nodes)
    }

    /// Is the place one of these, or inside one? Those with `except` segments do not count.
    pub(crate) fn covers(&self, place: &FieldPath, except: Option<usize>) -> bool {
        match self {
            Self::Few(places) => {
                let mut places = places.iter().filter(|rule| Some(rule.segments().len()) != except);
                places.any(|rule| is_inside(place, rule))
            }
            Self::Many(nodes) => covers(nodes, place.segments(), except),
        }
    }
}

fn insert(nodes: &mut Vec<Node>, place: &FieldPath) {
    let mut at = 0;
    for segment in place.segments() {
        let next = nodes.len();
        let Some(node) = nodes.get_mut(at) else { return };
        at = match segment {
            Segment::Index(index) => *node.indexes.entry(*index).or_insert(next),
            Segment::Field(name) => {
                let known = node.fields.get(name).copied();
                known.unwrap_or_else(|| {
                    node.fields.insert(name.clone(), next);
                    if let Ok(index) = name.parse() {
                        node.digits.entry(index).or_default().push(next);
                    }
                    next
                })
            }
        };
        if at == next {
            nodes.push(Node::default());
        }
    }
    if let Some(node) = nodes.get_mut(at) {
        node.is_place = true;
    }
}

fn covers(nodes: &[Node], place: &[Segment], except: Option<usize>) -> bool {
    let mut open = vec![(0, 0)];
    while let Some((at, depth)) = open.pop() {
        let Some(node) = nodes.get(at) else { continue };
        if node.is_place && except != Some(depth) {
            return true;
        }
        match place.get(depth) {
            Some(Segment::Field(name)) => {
                open.extend(node.fields.get(name).map(|next| (*next, depth + 1)));
            }
            Some(Segment::Index(index)) => {
                open.extend(node.indexes.get(index).map(|next| (*next, depth + 1)));
                let digits = node.digits.get(index).into_iter().flatten();
                open.extend(digits.map(|next| (*next, depth + 1)));
            }
            None => {}
        }
    }
    false
}

/// Is `place` the `rule`'s place, or inside it? A pointer's digits name a list position or a key.
fn is_inside(place: &FieldPath, rule: &FieldPath) -> bool {
    let (place, rule) = (place.segments(), rule.segments());
    rule.len() <= place.len()
        && rule.iter().zip(place).all(|(rule, place)| match (rule, place) {
            (Segment::Field(digits), Segment::Index(index)) => digits.parse() == Ok(*index),
            (rule, place) => rule == place,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_set_answers_as_a_small_one() {
        let pointers = ["/a/b", "/a/0/c", "/d/7", "/d/007", "/e/1/2", "/f"];
        let mut places: Vec<FieldPath> = pointers.iter().map(|one| FieldPath::from_pointer(one)).collect();
        places.push(FieldPath::root().field("g").index(3).field("x"));
        let few = PlaceSet::Few(places.clone());
        places.extend((0..FEW).map(|n| FieldPath::root().field("other").index(n)));
        let many = PlaceSet::new(&places);
        assert!(matches!(many, PlaceSet::Many(_)));
        let root = FieldPath::root();
        for place in [
            root.clone(),
            root.field("a"),
            root.field("a").field("b"),
            root.field("a").field("b").field("c"),
            root.field("a").index(0).field("c"),
            root.field("a").index(1).field("c"),
            root.field("d").index(7),
            root.field("d").field("7"),
            root.field("e").index(1).index(2).field("z"),
            root.field("g").index(3).field("x"),
            root.field("g").field("3").field("x"),
            root.field("f"),
        ] {
            for except in [None, Some(1), Some(2), Some(3)] {
                assert_eq!(few.covers(&place, except), many.covers(&place, except), "{place} {except:?}");
            }
        }
        assert!(many.covers(&root.field("other").index(2), None));
    }
}
