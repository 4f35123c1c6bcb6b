//! How large an object is, before it is judged.

use serde_json::Value;

use crate::drift::Evidence;

/// Fields and items in one object up to which it is judged in a few milliseconds.
const SMALL: usize = 20_000;

/// May judging this object take long, so that others should not wait for it?
pub fn is_large(evidence: &Evidence<'_>) -> bool {
    let desired = evidence.desired.map(|desired| &desired.manifest);
    let mut left = SMALL;
    desired.into_iter().chain(evidence.live).any(|manifest| !fits(manifest.value(), &mut left))
}

/// Counts down one for each field and item, and stops at zero.
fn fits(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::Object(map) => map.values().all(|value| fits(value, left)),
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_items_are_counted_up_to_the_limit() {
        for (n_items, expected) in [(0, true), (SMALL - 2, true), (SMALL - 1, false), (10 * SMALL, false)] {
            let mut left = SMALL;
            assert_eq!(fits(&json!({"a": vec![1; n_items]}), &mut left), expected, "{n_items}");
        }
    }
}
