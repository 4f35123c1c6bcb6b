//! Replacing a whole value.

use serde_json::Value;

use super::layout::Layout;
use super::props::Props;
use super::splice::Splice;
use super::value_text::Parts;
use crate::yaml::scalar::Tag;
use crate::yaml::span::{Span, Style};
use crate::yaml::tree::{Content, NodeId};

/// A value in its surroundings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub node: NodeId,
    /// The byte behind the `:` or `-` before it, if there is one.
    pub after: Option<usize>,
    pub place: Place,
}

/// What a value is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the document.
    Root,
    /// The value of a key in this column.
    Pair { indent: usize },
    /// The item of a list, which starts in this column.
    Item { column: usize },
    /// Inside brackets.
    Flow,
}

impl Layout<'_> {
    /// Column of a byte, from 0.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text.get(self.line_start(at)..at).map_or(0, |before| before.chars().count())
    }

    /// The quotes of a map's first key.
    pub(super) fn key_style(&self, map: NodeId) -> Style {
        if self.habits.is_json {
            return Style::DoubleQuoted;
        }
        match &self.node(map).content {
            Content::Mapping(pairs) => pairs.first().map_or(Style::Plain, |(key, _)| self.span(*key).style),
            Content::Scalar { .. } | Content::Sequence(_) | Content::Alias(_) => Style::Plain,
        }
    }

    /// Writes another value in place of this one.
    pub(super) fn replace(&self, slot: Slot, new: &Value) -> Vec<Splice> {
        let span = self.span(slot.node);
        let like = match span.style {
            style @ (Style::SingleQuoted | Style::DoubleQuoted | Style::BlockText)
                if self.is_text(slot.node) =>
            {
                style
            }
            _ => Style::Plain,
        };
        let is_filled = match new {
            Value::Object(map) => !map.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        let has_anchor = Props::read(self.text, span.start, span.content).anchor.is_some();
        let parts = match slot.place {
            Place::Flow => Parts::inline(self.habits.flow(new, like)),
            Place::Pair { indent } => self.habits.behind_key(new, indent, like),
            // On one line with a map, the anchor would belong to its first key.
            Place::Item { column } if is_filled && has_anchor => {
                Parts { head: String::new(), lines: self.habits.lines(new, column) }
            }
            Place::Item { column } => self.habits.behind_dash(new, column, like),
            Place::Root if is_filled => Parts { head: String::new(), lines: self.habits.lines(new, 0) },
            Place::Root => Parts::inline(self.habits.flow(new, Style::DoubleQuoted)),
        };
        self.put(slot, parts)
    }

    /// Quotes with a tag such as `!!int` do not make a text.
    fn is_text(&self, node: NodeId) -> bool {
        matches!(self.node(node).content, Content::Scalar { tag: Tag::Text | Tag::Str, .. })
    }

    /// Puts text in place of a value. Its anchor stays, its tag goes.
    pub(super) fn put(&self, slot: Slot, parts: Parts) -> Vec<Splice> {
        let span = self.span(slot.node);
        let props = Props::read(self.text, span.start, span.content);
        let anchor = props.anchor.clone().and_then(|range| self.text.get(range)).unwrap_or_default();
        let space = if anchor.is_empty() || parts.head.is_empty() { "" } else { " " };
        let parts = Parts { head: format!("{anchor}{space}{}", parts.head), ..parts };
        match span.style {
            Style::Block => self.put_for_block(slot, span, &props, parts),
            Style::BlockText => self.put_for_block_text(slot, span, parts),
            _ => self.put_for_inline(slot, span, parts),
        }
    }

    fn put_for_inline(&self, slot: Slot, span: &Span, parts: Parts) -> Vec<Splice> {
        let head = if slot.after == Some(span.start) && span.start == span.end && !parts.head.is_empty() {
            format!(" {}", parts.head)
        } else {
            parts.head
        };
        // Without a head, the blank before the value goes, too.
        let from = slot.after.filter(|_| head.is_empty()).unwrap_or(span.start);
        let mut splices = vec![Splice::new(from..span.end, head)];
        if !parts.lines.is_empty() {
            splices.push(Splice::insert(self.next_line(span.end), parts.lines));
        }
        splices
    }

    /// The text behind `|` or `>` goes, a comment behind the sign stays.
    fn put_for_block_text(&self, slot: Slot, span: &Span, parts: Parts) -> Vec<Splice> {
        let header = self.text.get(span.content..).unwrap_or_default();
        let length =
            header.find(|char: char| !matches!(char, '|' | '>' | '+' | '-' | '0'..='9')).unwrap_or(0);
        let header_end = span.content + length;
        let body = self.next_line(header_end);
        let body_end = if span.end > header_end { self.next_line(span.end) } else { body };
        let from = slot.after.filter(|_| parts.head.is_empty()).unwrap_or(span.start);
        vec![Splice::new(from..header_end, parts.head), Splice::new(body..body_end.max(body), parts.lines)]
    }

    fn put_for_block(&self, slot: Slot, span: &Span, props: &Props, parts: Parts) -> Vec<Splice> {
        let Some(after) = slot.after else {
            let head = if parts.head.is_empty() { String::new() } else { format!("{}\n", parts.head) };
            let region = self.line_start(span.start)..self.next_line(span.end);
            return vec![Splice::new(region, format!("{head}{}", parts.lines))];
        };
        if self.line_start(span.content) == self.line_start(after) {
            let mut splices = vec![Splice::new(span.start..span.end, parts.head)];
            if !parts.lines.is_empty() {
                splices.push(Splice::insert(self.next_line(span.end), parts.lines));
            }
            return splices;
        }
        let indent = match slot.place {
            Place::Pair { indent } => indent,
            Place::Item { column } => column.saturating_sub(1),
            Place::Root | Place::Flow => 0,
        };
        let end = self.past_inner_comments(self.next_line(span.end), indent);
        let lines = Splice::new(self.line_start(span.content)..end, parts.lines);
        let has_props = props.end > span.start;
        let head = match (has_props, parts.head.is_empty()) {
            (true, _) => Splice::new(span.start..props.end, parts.head),
            (false, true) => return vec![lines],
            (false, false) => Splice::insert(after, format!(" {}", parts.head)),
        };
        vec![head, lines]
    }
}
