//! Errors of reading a value, with its path.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// A value of the wrong type or form. Printed as `spec.sources[1].path: expected a string, found a map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// From the inside out, so that adding an outer step is cheap.
    steps: Vec<Step>,
    expected: &'static str,
    found: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

impl WireError {
    /// The value is of another type.
    pub fn unexpected(expected: &'static str, found: &Value) -> Self {
        Self { steps: Vec::new(), expected, found: describe(found) }
    }

    /// The value is of the right type but not of the right form.
    pub fn malformed(expected: &'static str, text: &str) -> Self {
        Self { steps: Vec::new(), expected, found: quoted(text) }
    }

    /// The same error, seen from the map that holds the field.
    #[must_use]
    pub fn inside_field(mut self, key: &str) -> Self {
        self.steps.push(Step::Field(key.to_owned()));
        self
    }

    /// The same error, seen from the list that holds the item.
    #[must_use]
    pub fn inside_index(mut self, index: usize) -> Self {
        self.steps.push(Step::Index(index));
        self
    }

    /// The path, such as `spec.sources[1].path`. Empty for the whole value.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(key) if path.is_empty() => path.push_str(key),
                Step::Field(key) => {
                    path.push('.');
                    path.push_str(key);
                }
                Step::Index(index) => {
                    // Writing to a String cannot fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    /// What should be there.
    pub fn expected(&self) -> &'static str {
        self.expected
    }

    /// What is there.
    pub fn found(&self) -> &str {
        &self.found
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for WireError {}

/// Describes a value. Strings are not quoted: a misplaced value may be a password.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => format!("the boolean {truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

/// At most 60 characters of a text, in quotes and on one line.
fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).flat_map(char::escape_default).collect();
    if text.chars().count() > 60 {
        short.push('…');
    }
    format!("\"{short}\"")
}
