//! Values as text, charged while they are written.

use super::budget::{Budget, Flow};
use super::value::{Val, View};

/// As `tostring` does: a text stays as it is, everything else becomes JSON.
pub(super) fn write_text(value: &Val<'_>, into: &mut String, budget: &Budget) -> Flow {
    match value.view() {
        View::Text(text) => {
            budget.build(text.len())?;
            into.push_str(text);
            Ok(())
        }
        _ => write_json(value, into, budget),
    }
}

fn write_json(value: &Val<'_>, into: &mut String, budget: &Budget) -> Flow {
    match value.view() {
        View::Null => write_raw("null", into, budget),
        View::Bool(flag) => write_raw(if flag { "true" } else { "false" }, into, budget),
        View::Number(number) => write_raw(&number.to_string(), into, budget),
        View::Text(text) => write_quoted(text, into, budget),
        View::Array(items) => {
            into.push('[');
            for index in 0..items.len() {
                if index > 0 {
                    into.push(',');
                }
                if let Some(item) = items.get(index) {
                    write_json(&item, into, budget)?;
                }
            }
            write_raw("]", into, budget)
        }
        View::Object(_) => {
            into.push('{');
            let mut is_first = true;
            value.each_child(|key, value| {
                if !std::mem::take(&mut is_first) {
                    into.push(',');
                }
                write_json(&key, into, budget)?;
                into.push(':');
                write_json(&value, into, budget)
            })?;
            write_raw("}", into, budget)
        }
    }
}

fn write_raw(text: &str, into: &mut String, budget: &Budget) -> Flow {
    budget.build(text.len() + 1)?;
    into.push_str(text);
    Ok(())
}

/// An escape takes six bytes at most.
fn write_quoted(text: &str, into: &mut String, budget: &Budget) -> Flow {
    budget.build(text.len().saturating_mul(6))?;
    // A text can always be written as JSON.
    into.push_str(&serde_json::to_string(text).unwrap_or_default());
    Ok(())
}
