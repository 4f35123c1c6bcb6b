//! From operations to a proved text.

use serde_json::Value;

use super::layout::{Layout, is_json};
use super::splice::{Splice, spliced};
use super::{EditRefusal, Operation};
use crate::object::FieldPath;
use crate::yaml::text::{self, Chunk};
use crate::yaml::{Limits, YamlError, parse_documents};

/// Largest file. A file of objects is far smaller: the API server accepts little more than a megabyte.
const MAX_BYTES: usize = 8 << 20;
/// Most steps of one edit, and most bytes that all of them together read.
const MAX_STEPS: usize = 2_000;
const MAX_WORK: usize = 256 << 20;

/// A text that was changed, and proved to say what it shall.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    /// The whole file.
    pub text: String,
    /// What the edited document says now.
    pub value: Value,
}

impl Edited {
    /// Is it another text than this one?
    pub fn differs_from(&self, text: &[u8]) -> bool {
        self.text.as_bytes() != text
    }
}

/// Applies operations, in their order, to one document of a file: that with the number `document` among those that
/// [`parse_documents`] returns. Everything else keeps every byte.
pub fn edit_document(file: &[u8], document: usize, operations: &[Operation]) -> Result<Edited, EditRefusal> {
    let limits = Limits { max_bytes: MAX_BYTES, ..Limits::default() };
    let text = readable(file)?;
    let before = parse_documents(text, &limits).map_err(EditRefusal::Unreadable)?;
    let place = find(text, document, &limits)?;
    let end = place.offset + place.text.len().min(text.len() - place.offset);
    let has_last_break = text.get(..end).is_some_and(|text| text.ends_with('\n'));
    let mut current =
        Current { text: place.text.clone().into_owned(), first_line: place.first_line, n_steps: 0 };
    if !has_last_break && text.contains("\r\n") {
        current.text = format!("{}\r\n", without_break(&current.text));
    }
    for operation in operations {
        current.apply(operation, &limits).map_err(|refusal| refusal.about(operation.path()))?;
    }
    let path = operations.first().map_or_else(FieldPath::root, |operation| operation.path().clone());
    let not_proved = || EditRefusal::NotProved { path: path.clone(), line: place.first_line };
    let was_json = is_json(&place.text);
    if was_json && !is_json(&current.text) {
        return Err(not_proved());
    }
    let mut edited = text.get(..place.offset).unwrap_or_default().to_owned();
    edited.push_str(if has_last_break { &current.text } else { without_break(&current.text) });
    edited.push_str(text.get(end..).unwrap_or_default());
    // The proof. What the operations make of the old value does not depend on any text.
    let mut intended: Vec<Value> = before.into_iter().map(|document| document.value).collect();
    if let Some(value) = intended.get_mut(document) {
        for operation in operations {
            *value = as_read(operation)?.apply(value)?;
        }
    }
    let after = parse_documents(&edited, &limits).map_err(|_| not_proved())?;
    let after: Vec<Value> = after.into_iter().map(|document| document.value).collect();
    if after != intended {
        return Err(not_proved());
    }
    let value = intended.into_iter().nth(document).unwrap_or_default();
    Ok(Edited { text: edited, value })
}

/// The text of a file, if its bytes and lines are what every program takes them for.
fn readable(file: &[u8]) -> Result<&str, EditRefusal> {
    let newlines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count();
    let text = std::str::from_utf8(file).map_err(|error| EditRefusal::Encoding {
        line: newlines(file.get(..error.valid_up_to()).unwrap_or_default()),
    })?;
    if text.len() > MAX_BYTES {
        return Err(EditRefusal::TooLarge { limit: MAX_BYTES, what: "bytes" });
    }
    let is_odd = |(at, char): &(usize, char)| match char {
        '\u{85}' | '\u{2028}' | '\u{2029}' => true,
        '\r' => !text.get(at + 1..).is_some_and(|rest| rest.starts_with('\n')),
        _ => false,
    };
    match text.char_indices().find(is_odd) {
        None => Ok(text),
        Some((at, char)) => Err(EditRefusal::LineBreak {
            line: newlines(text.get(..at).unwrap_or_default().as_bytes()),
            code: char.into(),
        }),
    }
}

/// The part of the text that holds a document.
fn find<'text>(text: &'text str, document: usize, limits: &Limits) -> Result<Chunk<'text>, EditRefusal> {
    let mut n_documents = 0;
    for chunk in text::split(text).map_err(EditRefusal::Unreadable)? {
        let read = Layout::read(&chunk.text, chunk.first_line, limits).map_err(EditRefusal::Unreadable)?;
        if read.is_none() {
            continue;
        }
        if n_documents == document {
            return Ok(chunk);
        }
        n_documents += 1;
    }
    Err(EditRefusal::NoDocument { document, n_documents })
}

fn without_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The operation with its value as the reader reads it: `1.0` is 1.
fn as_read(operation: &Operation) -> Result<Operation, EditRefusal> {
    let read = |value: &Value| -> Result<Value, EditRefusal> {
        let text = super::value_text::Habits { step: 2, list_step: 2, is_json: true }
            .flow(value, crate::yaml::span::Style::DoubleQuoted);
        let documents = parse_documents(&text, &Limits::default()).map_err(EditRefusal::Unreadable)?;
        Ok(documents.into_iter().next().map(|document| document.value).unwrap_or_default())
    };
    Ok(match operation {
        Operation::Set { path, value } => Operation::Set { path: path.clone(), value: read(value)? },
        Operation::Explain { path, value, comment } => {
            Operation::Explain { path: path.clone(), value: read(value)?, comment: comment.clone() }
        }
        Operation::Append { path, value, comment } => {
            Operation::Append { path: path.clone(), value: read(value)?, comment: comment.clone() }
        }
        Operation::Remove { .. } | Operation::Rename { .. } => operation.clone(),
    })
}

/// One document while it is changed.
struct Current {
    text: String,
    first_line: usize,
    n_steps: usize,
}

impl Current {
    fn apply(&mut self, operation: &Operation, limits: &Limits) -> Result<(), EditRefusal> {
        let operation = as_read(operation)?;
        let line = self.first_line;
        let not_proved = || EditRefusal::NotProved { path: operation.path().clone(), line };
        let unreadable = |_: YamlError| not_proved();
        let read = Layout::read(&self.text, self.first_line, limits).map_err(unreadable)?;
        let (_, first) = read.ok_or_else(not_proved)?;
        let intended = operation.apply(&first)?;
        let mut last: Option<Value> = None;
        loop {
            let read = Layout::read(&self.text, self.first_line, limits).map_err(unreadable)?;
            let (layout, value) = read.ok_or_else(not_proved)?;
            if value == intended {
                let note = match &operation {
                    Operation::Append { path, comment: Some(comment), .. } if value != first => {
                        layout.comment_on_last(path, comment)
                    }
                    Operation::Explain { path, comment, .. } if value != first => {
                        layout.comment_on_field(path, comment)
                    }
                    _ => None,
                };
                if let Some(note) = note {
                    self.text =
                        spliced(&self.text, vec![with_breaks(&self.text, note)]).ok_or_else(not_proved)?;
                }
                return Ok(());
            }
            // A step that changed nothing would be taken for ever.
            if last.as_ref() == Some(&value) {
                return Err(not_proved());
            }
            self.n_steps += 1;
            let limit = MAX_STEPS.min(MAX_WORK / self.text.len().max(1) + 16);
            if self.n_steps > limit {
                return Err(EditRefusal::TooLarge { limit, what: "steps" });
            }
            let splices = match &operation {
                Operation::Rename { path, to } => layout.rename(path, to)?,
                Operation::Set { .. }
                | Operation::Explain { .. }
                | Operation::Append { .. }
                | Operation::Remove { .. } => {
                    let (place, splices) = layout.step(&value, &intended)?;
                    // An earlier step changed something else. To repair that would change more lines than meant.
                    if !operation.concerns(&place, &first) {
                        return Err(not_proved());
                    }
                    splices
                }
            };
            let splices = splices.into_iter().map(|splice| with_breaks(&self.text, splice)).collect();
            self.text = spliced(&self.text, splices).ok_or_else(not_proved)?;
            last = Some(value);
        }
    }
}

/// The text with the line breaks of the lines around it.
fn with_breaks(text: &str, splice: Splice) -> Splice {
    let before = text.get(..splice.range.start).unwrap_or_default();
    let around = before.rfind('\n').or_else(|| text.find('\n')).unwrap_or(0);
    let is_crlf = around > 0 && text.as_bytes().get(around - 1) == Some(&b'\r');
    if is_crlf { Splice { text: splice.text.replace('\n', "\r\n"), ..splice } } else { splice }
}
