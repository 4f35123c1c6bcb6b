//! The answer of a health script.

use std::collections::BTreeMap;

use plumb_core::health::{Health, HealthStatus};
use serde_json::Value;

use crate::error::Error;
use crate::limits::Limits;
use crate::sandbox::Sandbox;

/// Argo CD's message for an invalid status.
const INVALID_STATUS: &str = "Lua returned an invalid health status";

impl Sandbox {
    /// Runs a health script. `None`: it returned no status (nil or an empty table), which is not an error.
    pub fn health(&self, source: &str, object: &Value) -> Result<Option<Health>, Error> {
        self.run(source, object, &BTreeMap::new(), read)
    }
}

fn read(answer: mlua::Value, _limits: &Limits) -> Result<Option<Health>, Error> {
    let table = match answer {
        mlua::Value::Nil => return Ok(None),
        mlua::Value::Table(table) => table,
        other => {
            // mlua has a separate type for integers, Lua 5.1 does not.
            let found = if other.is_integer() { "number" } else { other.type_name() };
            return Err(Error::Answer { expected: "a table", found: format!("a {found}") });
        }
    };
    if table.is_empty() {
        return Ok(None);
    }
    let text = |field: &str| match table.raw_get::<mlua::Value>(field) {
        Ok(mlua::Value::String(text)) => text.to_string_lossy(),
        Ok(mlua::Value::Integer(number)) => number.to_string(),
        Ok(mlua::Value::Number(number)) => number.to_string(),
        Ok(_) | Err(_) => String::new(),
    };
    Ok(Some(match HealthStatus::from_word(&text("status")) {
        Some(status) => Health::new(status, text("message")),
        None => Health::unknown(INVALID_STATUS),
    }))
}
