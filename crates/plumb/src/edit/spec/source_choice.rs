//! Which source of an app a command changes.

use serde_json::{Value, json};

use crate::edit::json_path::{list, map};
use crate::error::CommandError;

/// Which source of an app to change.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SourceChoice {
    /// Which source of an app with several, counted from 1.
    #[arg(long, value_name = "N")]
    pub(crate) source_position: Option<usize>,
    /// Which source of an app with several, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "source_position")]
    pub(crate) source_name: Option<String>,
}

impl SourceChoice {
    /// The selected source of a spec. An app with one source needs no selection.
    pub(crate) fn find<'a>(&self, spec: &'a mut Value) -> Result<&'a mut Value, CommandError> {
        let n = spec.get("sources").and_then(Value::as_array).map_or(0, Vec::len);
        if n == 0 {
            if self.source_position.is_some_and(|position| position != 1) {
                return Err(CommandError::usage("the app has one source; leave out --source-position"));
            }
            let spec = map(spec);
            return Ok(spec.entry("source").or_insert_with(|| json!({})));
        }
        let index = self.index(spec)?;
        list(map(spec).entry("sources").or_insert_with(|| json!([])))
            .get_mut(index)
            .ok_or_else(|| CommandError::usage(format!("source {} not found: the app has {n}", index + 1)))
    }

    /// The index of the selected source in `sources`.
    pub(crate) fn index(&self, spec: &Value) -> Result<usize, CommandError> {
        let sources = spec.get("sources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let n = sources.len();
        match (self.source_position, &self.source_name) {
            (None, None) => Err(CommandError::usage(format!("the app has {n} sources: select one"))
                .hint("--source-position 1 is the first; --source-name selects by name")),
            (Some(position), _) => position
                .checked_sub(1)
                .filter(|index| *index < n)
                .ok_or_else(|| CommandError::usage(format!("source {position} not found: the app has {n}"))),
            (None, Some(name)) => sources
                .iter()
                .position(|source| source.get("name").and_then(Value::as_str) == Some(name))
                .ok_or_else(|| CommandError::usage(format!("source {name} not found"))),
        }
    }
}
