//! One document with the places of its parts.

use serde_json::Value;

use super::value_text::Habits;
use crate::yaml::memory::Memory;
use crate::yaml::read::value_of;
use crate::yaml::scalar::{Resolved, resolve};
use crate::yaml::span::{Span, Style};
use crate::yaml::tree::{Content, Node, NodeId, Tree, parse_with_spans};
use crate::yaml::{Limits, YamlError};

/// A document that can be changed.
pub(super) struct Layout<'text> {
    pub text: &'text str,
    tree: Tree,
    spans: Vec<Span>,
    pub habits: Habits,
}

/// One key of a map with its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its place among the entries.
    pub at: usize,
    pub key: NodeId,
    pub value: NodeId,
}

impl<'text> Layout<'text> {
    /// Reads a document; `None` if there is nothing in it.
    pub(super) fn read(
        text: &'text str,
        first_line: usize,
        limits: &Limits,
    ) -> Result<Option<(Self, Value)>, YamlError> {
        let mut memory = Memory::new(limits.max_memory);
        let parsed = parse_with_spans(text, first_line, limits.max_depth, &mut memory)?;
        let Some((tree, spans)) = parsed else { return Ok(None) };
        let value = value_of(&tree, limits, &mut memory)?;
        let habits = Habits { step: 2, list_step: 2, is_json: is_json(text) };
        let mut layout = Self { text, tree, spans, habits };
        layout.habits = layout.observed_habits();
        Ok(Some((layout, value)))
    }

    pub(super) fn root(&self) -> NodeId {
        self.tree.root()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.tree.node(id)
    }

    pub(super) fn span(&self, id: NodeId) -> &Span {
        // There is one for every node.
        &self.spans[id.index()]
    }

    /// The keys of a map that have a line of their own, and their names. A merge key has none.
    pub(super) fn keys(&self, pairs: &[(NodeId, NodeId)]) -> Vec<(String, Entry)> {
        let named = pairs.iter().enumerate().filter_map(|(at, &(key, value))| {
            if self.node(key).is_merge_key() {
                return None;
            }
            Some((self.key_name(key)?, Entry { at, key, value }))
        });
        named.collect()
    }

    fn key_name(&self, id: NodeId) -> Option<String> {
        match &self.node(id).content {
            Content::Scalar { text, tag } => resolve(*tag, text).and_then(Resolved::into_key).ok(),
            Content::Alias(target) => match &self.node(*target).content {
                Content::Scalar { text, tag } => resolve(*tag, text).and_then(Resolved::into_key).ok(),
                Content::Sequence(_) | Content::Mapping(_) | Content::Alias(_) => None,
            },
            Content::Sequence(_) | Content::Mapping(_) => None,
        }
    }

    /// The byte behind an entry of a map or list: its value, or what is there of it.
    pub(super) fn entry_end(&self, id: NodeId, at: usize) -> usize {
        let span = self.span(id);
        let indicator = span.entries.get(at).and_then(|entry| entry.indicator_end).unwrap_or(0);
        let parts = match &self.node(id).content {
            Content::Mapping(pairs) => {
                pairs.get(at).map_or(0, |&(key, value)| self.span(key).end.max(self.span(value).end))
            }
            Content::Sequence(items) => items.get(at).map_or(0, |item| self.span(*item).end),
            Content::Scalar { .. } | Content::Alias(_) => span.end,
        };
        indicator.max(parts)
    }

    /// The first byte of the line that this byte is on.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// The first byte of the next line, or the end of the text.
    pub(super) fn next_line(&self, at: usize) -> usize {
        self.text
            .get(at..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// Are there only spaces before it on its line?
    pub(super) fn starts_its_line(&self, at: usize) -> bool {
        let before = self.text.get(self.line_start(at)..at).unwrap_or_default();
        before.chars().all(|char| char == ' ')
    }

    /// Is the rest of its line empty, or a comment?
    pub(super) fn ends_its_line(&self, at: usize) -> bool {
        let rest = self.text.get(at..self.next_line(at)).unwrap_or_default().trim();
        rest.is_empty() || rest.starts_with('#')
    }

    /// Steps over lines with nothing but a comment that is indented deeper than this column: it belongs to what is
    /// above it.
    pub(super) fn past_inner_comments(&self, from: usize, column: usize) -> usize {
        let mut at = from;
        loop {
            let line = self.text.get(at..self.next_line(at)).unwrap_or_default();
            let indented = line.trim_start_matches(' ');
            if !indented.starts_with('#') || line.len() - indented.len() <= column {
                return at;
            }
            at = self.next_line(at);
        }
    }

    /// How the document is written, by what most of it does.
    fn observed_habits(&self) -> Habits {
        let mut steps: Vec<usize> = Vec::new();
        let mut list_steps: Vec<usize> = Vec::new();
        let mut waiting = vec![self.root()];
        while let Some(id) = waiting.pop() {
            match &self.node(id).content {
                Content::Mapping(pairs) => {
                    let around = self.span(id);
                    for &(_, value) in pairs {
                        waiting.push(value);
                        let inside = self.span(value);
                        if around.style != Style::Block || inside.style != Style::Block {
                            continue;
                        }
                        let step = inside.column.saturating_sub(around.column);
                        match self.node(value).content {
                            Content::Mapping(_) => steps.push(step),
                            Content::Sequence(_) => list_steps.push(step),
                            Content::Scalar { .. } | Content::Alias(_) => {}
                        }
                    }
                }
                Content::Sequence(items) => waiting.extend(items),
                Content::Scalar { .. } | Content::Alias(_) => {}
            }
        }
        let step = most_frequent(&steps).filter(|step| *step > 0).unwrap_or(2);
        let list_step = most_frequent(&list_steps).unwrap_or(step);
        Habits { step, list_step, ..self.habits }
    }
}

/// JSON, in which everything has quotes and no comma is last.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn most_frequent(numbers: &[usize]) -> Option<usize> {
    let count = |number: usize| numbers.iter().filter(|other| **other == number).count();
    numbers.iter().copied().take(100).max_by_key(|number| (count(*number), std::cmp::Reverse(*number)))
}
