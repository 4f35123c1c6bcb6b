//! Entries in brackets.

use super::layout::Layout;
use super::splice::Splice;
use crate::yaml::tree::NodeId;

impl Layout<'_> {
    /// Writes an entry before the entry at this place, or behind the last one.
    pub(super) fn insert_in_flow(&self, id: NodeId, at: usize, entry: &str) -> Vec<Splice> {
        let span = self.span(id);
        if let Some(next) = span.entries.get(at) {
            return vec![Splice::insert(next.start, format!("{entry}, "))];
        }
        let Some(last) = span.entries.len().checked_sub(1) else {
            return vec![Splice::insert(span.content + 1, entry)];
        };
        let start = span.entries.get(last).map_or(span.content, |entry| entry.start);
        let end = self.entry_end(id, last);
        let comma = self.comma(end);
        let behind = comma.map_or(end, |comma| comma + 1);
        let margin = self.text.get(self.line_start(start)..start).unwrap_or_default();
        if !margin.trim().is_empty() || !self.ends_its_line(behind) {
            // `b:` without a value needs a blank before the comma.
            let blank = if self.text.get(..end).is_some_and(|text| text.ends_with(':')) { " " } else { "" };
            return vec![Splice::insert(end, format!("{blank}, {entry}"))];
        }
        // One entry per line: the new one gets its own, and a last comma stays a habit.
        let mut splices = Vec::new();
        if comma.is_none() {
            splices.push(Splice::insert(end, ","));
        }
        let last_comma = if comma.is_some() { "," } else { "" };
        splices.push(Splice::insert(self.next_line(behind), format!("{margin}{entry}{last_comma}\n")));
        splices
    }

    /// Removes an entry with one comma.
    pub(super) fn remove_in_flow(&self, id: NodeId, at: usize) -> Vec<Splice> {
        let span = self.span(id);
        let Some(entry) = span.entries.get(at) else { return Vec::new() };
        let end = self.entry_end(id, at);
        let comma = self.comma(end);
        let behind = comma.map_or(end, |comma| comma + 1);
        let margin = self.text.get(self.line_start(entry.start)..entry.start).unwrap_or_default();
        let has_own_lines = margin.trim().is_empty() && self.ends_its_line(behind);
        let own = if has_own_lines {
            Splice::delete(self.line_start(entry.start)..self.next_line(behind))
        } else {
            let rest = self.text.get(behind..).unwrap_or_default();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            Splice::delete(entry.start..behind + if comma.is_some() { blanks } else { 0 })
        };
        let Some(before) = at.checked_sub(1).filter(|_| comma.is_none()) else { return vec![own] };
        // The last entry without a comma behind it: the comma before it goes.
        let before_end = self.entry_end(id, before);
        let Some(comma) = self.comma(before_end) else { return vec![own] };
        let is_on_its_line = self.line_start(entry.start) == self.line_start(before_end);
        if is_on_its_line {
            return vec![Splice::delete(before_end..end)];
        }
        vec![Splice::delete(comma..comma + 1), own]
    }

    /// The comma behind an entry, if there is one.
    fn comma(&self, from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let rest = self.text.get(at..)?;
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            at += rest.len() - trimmed.len();
            match trimmed.chars().next()? {
                ',' => return Some(at),
                '#' => at = self.next_line(at),
                _ => return None,
            }
        }
    }
}
