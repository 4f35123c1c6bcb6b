//! On which line of a file a field is.

use super::memory::Memory;
use super::tree::{Content, NodeId, Tree};
use super::{Limits, text, tree};
use crate::object::{FieldPath, Segment};

/// The line (from 1) of a place in one document of a file, by the number of the document. Where the document does not
/// have the place (a field that comes from a merge key or an alias), the line of the nearest place around it. `None` if
/// the file cannot be read, or has no such document.
pub fn line_of(file: &[u8], document: usize, place: &FieldPath) -> Option<usize> {
    let limits = Limits::default();
    if file.len() > limits.max_bytes {
        return None;
    }
    let decoded = text::decode(file).ok()?;
    let mut memory = Memory::new(limits.max_memory);
    let mut number = 0;
    for chunk in text::split(&decoded).ok()? {
        let parsed = tree::parse(&chunk.text, chunk.first_line, limits.max_depth, &mut memory).ok()?;
        let Some(tree) = parsed else { continue };
        if number == document {
            return Some(line_in(&tree, place));
        }
        number += 1;
    }
    None
}

fn line_in(tree: &Tree, place: &FieldPath) -> usize {
    let mut node = tree.root();
    let mut line = tree.node(node).line;
    for segment in place.segments() {
        let Some((at, next)) = child(tree, node, segment) else { break };
        (line, node) = (tree.node(at).line, next);
    }
    line
}

/// The node that shows where a child is, and the child itself.
fn child(tree: &Tree, node: NodeId, segment: &Segment) -> Option<(NodeId, NodeId)> {
    match (&tree.node(node).content, segment) {
        (Content::Mapping(pairs), Segment::Field(name)) => {
            let is_it = |key: &NodeId| match &tree.node(*key).content {
                Content::Scalar { text, .. } => text == name,
                Content::Sequence(_) | Content::Mapping(_) | Content::Alias(_) => false,
            };
            pairs.iter().find(|(key, _)| is_it(key)).copied()
        }
        (Content::Sequence(items), Segment::Index(index)) => items.get(*index).map(|item| (*item, *item)),
        (Content::Sequence(items), Segment::Field(index)) => {
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some((*item, *item))
        }
        (Content::Scalar { .. } | Content::Alias(_), _) | (Content::Mapping(_), Segment::Index(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_a_line() {
        let file = "# comment\na: 1\n---\n---\nb:\n  c:\n  - x\n  - y: 1\n    z: 2\n  d: &d {e: 5}\nf: *d\n";
        for (document, pointer, expected) in [
            (0, "/a", Some(2)),
            (0, "", Some(2)),
            (1, "/b", Some(5)),
            (1, "/b/c/1/z", Some(9)),
            (1, "/b/d/e", Some(10)),
            // What is not there has the line of what is around it.
            (1, "/b/c/7", Some(6)),
            (1, "/b/nothing/at/all", Some(5)),
            // An alias is where it is written.
            (1, "/f/e", Some(11)),
            (2, "/a", None),
        ] {
            let place = FieldPath::from_pointer(pointer);
            assert_eq!(line_of(file.as_bytes(), document, &place), expected, "{document} {pointer}");
        }
        assert_eq!(line_of(b"a: [", 0, &FieldPath::root()), None);
        assert_eq!(line_of(b"\xff\xff", 0, &FieldPath::root()), None);
    }
}
