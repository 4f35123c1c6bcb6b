//! Whether one value has all of another.

use serde_json::Value;

/// Does a value have everything that is asked of it? It may have more: defaults, status, marks of others.
pub fn has_all(live: &Value, asked: &Value) -> bool {
    match (live, asked) {
        (Value::Object(live), Value::Object(asked)) => {
            asked.iter().all(|(name, asked)| live.get(name).is_some_and(|live| has_all(live, asked)))
        }
        (Value::Array(live), Value::Array(asked)) => {
            live.len() == asked.len() && live.iter().zip(asked).all(|(live, asked)| has_all(live, asked))
        }
        (live, asked) => live == asked,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn more_is_enough_and_less_or_other_is_not() {
        let asked = json!({"spec": {"scope": "Namespaced", "versions": [{"name": "v1"}]}});
        for (live, expected) in [
            (
                json!({"spec": {"scope": "Namespaced", "versions": [{"name": "v1", "served": true}]}, "status": {}}),
                true,
            ),
            (json!({"spec": {"scope": "Cluster", "versions": [{"name": "v1"}]}}), false),
            (json!({"spec": {"scope": "Namespaced", "versions": [{"name": "v1"}, {"name": "v2"}]}}), false),
            (json!({"spec": {}}), false),
        ] {
            assert_eq!(has_all(&live, &asked), expected, "{live}");
        }
    }
}
