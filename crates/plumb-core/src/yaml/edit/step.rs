//! One change of the text: the first place where the document does not say what it shall.

use serde_json::{Map, Value};

use super::EditRefusal;
use super::layout::{Entry, Layout};
use super::slot::{Place, Slot};
use super::splice::Splice;
use super::value_text::Parts;
use crate::object::{FieldPath, Segment};
use crate::yaml::span::Style;
use crate::yaml::tree::{Content, NodeId};

/// What a step returns: the changes of the text; none if nothing differs.
pub(super) type Step = Result<Vec<Splice>, EditRefusal>;

impl Layout<'_> {
    /// The change of the text that brings the document one step nearer to what it shall be, and the place that
    /// differed.
    pub(super) fn step(&self, old: &Value, new: &Value) -> Result<(FieldPath, Vec<Splice>), EditRefusal> {
        let place = if self.habits.is_json { Place::Flow } else { Place::Root };
        let root = Slot { node: self.root(), after: None, place };
        let mut path = FieldPath::root();
        let splices = self.step_at(root, &mut path, old, new)?;
        Ok((path, splices))
    }

    fn step_at(&self, slot: Slot, path: &mut FieldPath, old: &Value, new: &Value) -> Step {
        self.check_not_repeated(slot.node, path)?;
        match (&self.node(slot.node).content, old, new) {
            (Content::Mapping(pairs), Value::Object(old), Value::Object(new)) => {
                self.step_in_map(slot, path, pairs, (old, new))
            }
            (Content::Sequence(items), Value::Array(old), Value::Array(new)) => {
                self.step_in_list(slot, path, items, (old, new))
            }
            (Content::Alias(target), Value::Object(old), Value::Object(new))
                if matches!(self.node(*target).content, Content::Mapping(_)) =>
            {
                self.override_alias(slot, path, (old, new))
            }
            _ => {
                self.check_removable(slot.node, path)?;
                Ok(self.replace(slot, new))
            }
        }
    }

    fn step_in_map(
        &self,
        slot: Slot,
        path: &mut FieldPath,
        pairs: &[(NodeId, NodeId)],
        (old, new): (&Map<String, Value>, &Map<String, Value>),
    ) -> Step {
        let keys = self.keys(pairs);
        let entry = |name: &str| keys.iter().find(|(key, _)| key == name).map(|(_, entry)| *entry);
        if let Some(name) = old.keys().find(|name| !new.contains_key(*name)) {
            path.push(Segment::Field(name.into()));
            let Some(entry) = entry(name) else { return Err(self.merged(slot.node, path)) };
            self.check_removable(entry.key, path)?;
            self.check_removable(entry.value, path)?;
            return Ok(self.remove_entry(slot, entry.at, &Value::Object(Map::new())));
        }
        let Some((name, value)) = new.iter().find(|(name, value)| old.get(*name) != Some(value)) else {
            return Ok(Vec::new());
        };
        match (old.get(name), entry(name)) {
            (Some(old), Some(entry)) => {
                path.push(Segment::Field(name.into()));
                self.step_in_pair(slot.node, path, entry, (old, value))
            }
            // A field that comes from a merge key is set beside it: what is set later wins.
            (Some(_) | None, _) => self.insert_pair(slot, name, value),
        }
    }

    fn step_in_pair(
        &self,
        map: NodeId,
        path: &mut FieldPath,
        entry: Entry,
        (old, new): (&Value, &Value),
    ) -> Step {
        let span = self.span(map);
        let colon = span.entries.get(entry.at).and_then(|entry| entry.indicator_end);
        let is_block = span.style == Style::Block;
        if colon.is_none() && is_block {
            return Err(self.form(map, "a key (`?`) without a value"));
        }
        if colon.is_none() {
            let text = format!(": {}", self.habits.flow(new, Style::Plain));
            return Ok(vec![Splice::insert(self.span(entry.key).end, text)]);
        }
        let place = if is_block { Place::Pair { indent: span.column } } else { Place::Flow };
        self.step_at(Slot { node: entry.value, after: colon, place }, path, old, new)
    }

    fn step_in_list(
        &self,
        slot: Slot,
        path: &mut FieldPath,
        items: &[NodeId],
        (old, new): (&[Value], &[Value]),
    ) -> Step {
        let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
        let same_end =
            old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
        path.push(Segment::Index(same));
        match (items.get(same), old_rest.len() - same_end, new_rest.len() - same_end) {
            (_, 0, 0) => Ok(Vec::new()),
            (_, 0, _) => Ok(self.insert_item(slot, same, &new[same])),
            (Some(item), _, 0) => {
                self.check_removable(*item, path)?;
                Ok(self.remove_entry(slot, same, &Value::Array(Vec::new())))
            }
            (Some(item), _, _) => {
                let inner = self.item_slot(slot.node, *item, same);
                self.step_at(inner, path, &old[same], &new[same])
            }
            (None, _, _) => Ok(Vec::new()),
        }
    }

    fn item_slot(&self, list: NodeId, item: NodeId, at: usize) -> Slot {
        let span = self.span(list);
        let dash = span.entries.get(at).and_then(|entry| entry.indicator_end);
        match dash.filter(|_| span.style == Style::Block) {
            None => Slot { node: item, after: None, place: Place::Flow },
            Some(after) => {
                let start = self.span(item).start;
                let is_on_its_line = self.line_start(start) == self.line_start(after) && start > after;
                let column = if is_on_its_line { self.column(start) } else { span.column + 2 };
                Slot { node: item, after: Some(after), place: Place::Item { column } }
            }
        }
    }

    fn insert_pair(&self, slot: Slot, name: &str, value: &Value) -> Step {
        let span = self.span(slot.node);
        let n_entries = span.entries.len();
        match span.style {
            Style::Block => {
                let end = self.next_line(self.entry_end(slot.node, n_entries.saturating_sub(1)));
                let at = self.past_inner_comments(end, span.column);
                Ok(vec![Splice::insert(at, self.habits.pair(name, value, span.column))])
            }
            Style::Flow if n_entries == 0 && slot.place != Place::Flow => {
                Ok(self.replace(slot, &Value::Object(Map::from_iter([(name.to_owned(), value.clone())]))))
            }
            Style::Flow => {
                let like = self.key_style(slot.node);
                Ok(self.insert_in_flow(slot.node, n_entries, &self.habits.flow_pair(name, value, like)))
            }
            _ => Err(self.form(slot.node, "a map without braces inside `[ ]`")),
        }
    }

    fn insert_item(&self, slot: Slot, at: usize, value: &Value) -> Vec<Splice> {
        let span = self.span(slot.node);
        if span.style != Style::Block {
            if span.entries.is_empty() && slot.place != Place::Flow {
                return self.replace(slot, &Value::Array(vec![value.clone()]));
            }
            let like = if self.habits.is_json { Style::DoubleQuoted } else { Style::Plain };
            return self.insert_in_flow(slot.node, at, &self.habits.flow(value, like));
        }
        let text = self.habits.item(value, span.column, self.gap(slot.node));
        if let Some(before) = at.checked_sub(1) {
            let end = self.next_line(self.entry_end(slot.node, before));
            return vec![Splice::insert(self.past_inner_comments(end, span.column), text)];
        }
        let first = span.entries.first().map_or(span.content, |entry| entry.start);
        if self.starts_its_line(first) {
            return vec![Splice::insert(self.line_start(first), text)];
        }
        vec![Splice::insert(first, format!("{}{}", text.trim_start(), " ".repeat(span.column)))]
    }

    /// Spaces between `-` and the item in a list.
    fn gap(&self, list: NodeId) -> usize {
        let span = self.span(list);
        let Content::Sequence(items) = &self.node(list).content else { return 1 };
        let mut gaps = span.entries.iter().zip(items).filter_map(|(entry, item)| {
            let between = self.text.get(entry.indicator_end?..self.span(*item).start)?;
            (!between.is_empty() && between.chars().all(|char| char == ' ')).then_some(between.len())
        });
        gaps.next_back().unwrap_or(1)
    }

    /// Removes a key or an item. A map or list that loses its last one becomes `empty`.
    fn remove_entry(&self, slot: Slot, at: usize, empty: &Value) -> Vec<Splice> {
        let span = self.span(slot.node);
        let Some(entry) = span.entries.get(at) else { return Vec::new() };
        if span.entries.len() == 1 {
            let has_comment = self.text.get(span.content..span.end).is_some_and(|text| text.contains('#'));
            let is_in_brackets = span.style == Style::Flow;
            return if is_in_brackets && has_comment {
                self.remove_in_flow(slot.node, at)
            } else {
                self.replace(slot, empty)
            };
        }
        if span.style != Style::Block {
            return self.remove_in_flow(slot.node, at);
        }
        let end = self.past_inner_comments(self.next_line(self.entry_end(slot.node, at)), span.column);
        if self.starts_its_line(entry.start) {
            return vec![Splice::delete(self.line_start(entry.start)..end)];
        }
        // The first one is behind the `-` of a list: the next one takes its place, or the comment above that.
        let rest = self.text.get(end..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start().len();
        vec![Splice::delete(entry.start..end + blanks)]
    }

    /// An alias becomes a map that merges it and sets what differs.
    fn override_alias(
        &self,
        slot: Slot,
        path: &mut FieldPath,
        (old, new): (&Map<String, Value>, &Map<String, Value>),
    ) -> Step {
        if let Some(name) = old.keys().find(|name| !new.contains_key(*name)) {
            path.push(Segment::Field(name.into()));
            return Err(self.merged(slot.node, path));
        }
        let differing = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
        let differing: Map<String, Value> =
            differing.map(|(name, value)| (name.clone(), value.clone())).collect();
        let span = self.span(slot.node);
        let alias = self.text.get(span.content..span.end).unwrap_or_default();
        let differing = Value::Object(differing);
        let parts = match slot.place {
            Place::Flow => {
                let pairs = self.habits.flow(&differing, Style::Plain);
                Parts::inline(pairs.replacen('{', &format!("{{<<: {alias}, "), 1))
            }
            Place::Pair { indent } => {
                let column = indent + self.habits.step;
                let lines = self.habits.lines(&differing, column);
                Parts { head: String::new(), lines: format!("{}<<: {alias}\n{lines}", " ".repeat(column)) }
            }
            Place::Item { column } => {
                Parts { head: format!("<<: {alias}"), lines: self.habits.lines(&differing, column) }
            }
            Place::Root => return Err(self.form(slot.node, "an alias in place of a document")),
        };
        Ok(self.put(slot, parts))
    }

    /// Gives a key another name.
    pub(super) fn rename(&self, path: &FieldPath, to: &str) -> Step {
        let way = self.way(path);
        let map = way.last().copied().unwrap_or(self.root());
        let (Content::Mapping(pairs), Some(Segment::Field(name))) =
            (&self.node(map).content, path.segments().last())
        else {
            return Err(self.merged(map, path));
        };
        let found = self.keys(pairs).into_iter().find(|(key, _)| name == key);
        let Some((_, entry)) = found.filter(|_| way.len() == path.segments().len()) else {
            return Err(self.merged(map, path));
        };
        way.iter().try_for_each(|node| self.check_not_repeated(*node, path))?;
        self.check_removable(entry.key, path)?;
        let span = self.span(entry.key);
        let in_flow = self.span(map).style != Style::Block;
        match span.style {
            Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => {
                let text = super::scalar_text::string(to, in_flow, span.style);
                Ok(vec![Splice::new(span.content..span.end, text)])
            }
            _ => Err(self.form(entry.key, "a key that is not on one line")),
        }
    }

    /// A comment above the last item of a list, if the item has lines of its own.
    pub(super) fn comment_on_last(&self, path: &FieldPath, comment: &str) -> Option<Splice> {
        let way = self.way(&path.index(0));
        let list = *way.last().filter(|_| way.len() == path.segments().len() + 1)?;
        let span = self.span(list);
        self.comment_above(list, span.entries.len().checked_sub(1)?, comment)
    }

    /// A comment above a field, if the field has lines of its own.
    pub(super) fn comment_on_field(&self, path: &FieldPath, comment: &str) -> Option<Splice> {
        let way = self.way(path);
        let map = *way.last().filter(|_| way.len() == path.segments().len())?;
        let (Content::Mapping(pairs), Some(Segment::Field(name))) =
            (&self.node(map).content, path.segments().last())
        else {
            return None;
        };
        let (_, entry) = self.keys(pairs).into_iter().find(|(key, _)| name == key)?;
        self.comment_above(map, entry.at, comment)
    }

    /// A comment above an entry of a map or list.
    fn comment_above(&self, around: NodeId, at: usize, comment: &str) -> Option<Splice> {
        let span = self.span(around);
        let entry = span.entries.get(at).filter(|_| span.style == Style::Block)?;
        if !self.starts_its_line(entry.start) {
            return None;
        }
        let indent = " ".repeat(span.column);
        let lines: Vec<String> = comment.lines().map(|line| format!("{indent}# {}\n", line.trim())).collect();
        Some(Splice::insert(self.line_start(entry.start), lines.concat()))
    }

    /// The nodes from the root to the one around a place, as far as they have text of their own.
    fn way(&self, path: &FieldPath) -> Vec<NodeId> {
        let mut way = vec![self.root()];
        let steps = path.segments().split_last().map_or(&[] as &[Segment], |(_, steps)| steps);
        for segment in steps {
            let inside = way.last().map(|node| &self.node(*node).content);
            let next = match (inside, segment) {
                (Some(Content::Mapping(pairs)), Segment::Field(name)) => {
                    self.keys(pairs).into_iter().find(|(key, _)| name == key).map(|(_, entry)| entry.value)
                }
                (Some(Content::Sequence(items)), Segment::Index(at)) => items.get(*at).copied(),
                (Some(Content::Sequence(items)), Segment::Field(at)) => {
                    at.parse().ok().and_then(|at: usize| items.get(at).copied())
                }
                _ => None,
            };
            match next {
                Some(next) => way.push(next),
                None => break,
            }
        }
        way
    }

    fn merged(&self, node: NodeId, path: &FieldPath) -> EditRefusal {
        EditRefusal::Merged { path: path.clone(), line: self.node(node).line }
    }

    fn form(&self, node: NodeId, what: &'static str) -> EditRefusal {
        EditRefusal::Form { line: self.node(node).line, what }
    }
}
