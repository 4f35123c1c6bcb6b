//! Templates that can be rendered.

use std::fmt;

use crate::budget::Limits;
use crate::evaluate;
use crate::functions;
use crate::options::Options;
use crate::parser::{self, Known, Tree};
use crate::value::{Scope, Value};

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// It is no template.
    Parse(String),
    /// It failed with these parameters.
    Execute(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(message) | Self::Execute(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for TemplateError {}

/// A parsed template.
pub struct Template {
    name: String,
    text: String,
    tree: Tree,
}

impl Template {
    /// Parses a template; `name` is its name in messages.
    pub fn parse(name: &str, text: &str, limits: &Limits) -> Result<Self, TemplateError> {
        let is_function = |name: &str| functions::find(name).is_some();
        let known = Known { name, is_function: &is_function, max_depth: limits.depth };
        let tree = parser::parse(text, &known).map_err(TemplateError::Parse)?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), tree })
    }

    /// Renders it. Bytes that are no UTF-8 are replaced, as they are when Go writes JSON.
    pub fn render(
        &self,
        scope: &Scope,
        options: Options,
        parameters: &Value,
    ) -> Result<String, TemplateError> {
        let template = (self.name.as_str(), self.text.as_str(), &self.tree);
        let result = evaluate::run(template, scope, options.missing_key, parameters);
        let bytes = result.map_err(|fault| TemplateError::Execute(fault.0))?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| replaced(error.as_bytes())))
    }
}

/// Each byte that is not part of a character becomes one replacement character.
fn replaced(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    out
}
