//! Anchors: a text that stands for several places must not change for one of them.

use std::collections::BTreeSet;

use super::EditRefusal;
use super::layout::Layout;
use crate::object::FieldPath;
use crate::yaml::tree::{Content, NodeId};

impl Layout<'_> {
    /// Refuses to change something inside a node that an alias repeats elsewhere.
    pub(super) fn check_not_repeated(&self, id: NodeId, path: &FieldPath) -> Result<(), EditRefusal> {
        self.check(id, path, |alias, target| target == id && alias != id)
    }

    /// Refuses to take a node away of which an alias outside repeats a part.
    pub(super) fn check_removable(&self, id: NodeId, path: &FieldPath) -> Result<(), EditRefusal> {
        let parts = self.parts(id);
        self.check(id, path, |alias, target| parts.contains(&target) && !parts.contains(&alias))
    }

    fn check(
        &self,
        id: NodeId,
        path: &FieldPath,
        is_repeated: impl Fn(NodeId, NodeId) -> bool,
    ) -> Result<(), EditRefusal> {
        let aliases: Vec<(NodeId, NodeId)> =
            self.tree().aliases().filter(|&(alias, target)| is_repeated(alias, target)).collect();
        let Some(&(_, target)) = aliases.first() else { return Ok(()) };
        let anchor = if self.parts(id).contains(&target) { target } else { id };
        let mut alias_lines: Vec<usize> = aliases.iter().map(|(alias, _)| self.node(*alias).line).collect();
        alias_lines.dedup();
        Err(EditRefusal::Shared { path: path.clone(), anchor_line: self.node(anchor).line, alias_lines })
    }

    /// The node and everything inside it. Aliases are not followed.
    fn parts(&self, id: NodeId) -> BTreeSet<NodeId> {
        let mut parts = BTreeSet::new();
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            parts.insert(id);
            match &self.node(id).content {
                Content::Mapping(pairs) => {
                    waiting.extend(pairs.iter().flat_map(|(key, value)| [*key, *value]));
                }
                Content::Sequence(items) => waiting.extend(items),
                Content::Scalar { .. } | Content::Alias(_) => {}
            }
        }
        parts
    }
}
