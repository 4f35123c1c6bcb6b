//! Label selectors, also for labels that are only partly known.

use std::collections::BTreeMap;

use serde_json::Value;

/// The labels that a selector is matched with.
#[derive(Clone, Debug)]
pub(super) struct Labels<'a> {
    /// The labels that are known.
    pub(super) known: BTreeMap<&'a str, &'a str>,
    /// True if there are no others. Otherwise a label that is not known may match.
    pub(super) complete: bool,
}

/// True if these labels may match. A missing or empty selector matches everything.
pub(super) fn selects(selector: Option<&Value>, labels: &Labels<'_>) -> bool {
    let Some(selector) = selector else { return true };
    let pairs = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut pairs = pairs.map(|(key, value)| (key.as_str(), value.as_str()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    pairs.all(|(key, value)| is_unknown(key, labels) || labels.known.get(key).copied() == value)
        && expressions.into_iter().all(|expression| is_met(expression, labels))
}

fn is_met(expression: &Value, labels: &Labels<'_>) -> bool {
    let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let key = text("key");
    let found = labels.known.get(key);
    let is_listed = || {
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).any(|value| found == Some(&value))
    };
    is_unknown(key, labels)
        || match text("operator") {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            // An operator of a newer API server: it may match.
            _ => true,
        }
}

/// True if it is not known whether there is such a label.
fn is_unknown(key: &str, labels: &Labels<'_>) -> bool {
    !labels.complete && !labels.known.contains_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_as_in_the_api_server() {
        let complete = Labels { known: BTreeMap::from([("app", "web"), ("tier", "")]), complete: true };
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web", "tier": ""}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchLabels": {"other": "web"}}), false),
            (expression("In", "app", &["db", "web"]), true),
            (expression("In", "app", &["db"]), false),
            (expression("NotIn", "app", &["web"]), false),
            (expression("NotIn", "other", &["web"]), true),
            (expression("Exists", "tier", &[]), true),
            (expression("DoesNotExist", "tier", &[]), false),
            (expression("DoesNotExist", "other", &[]), true),
        ] {
            assert_eq!(selects(Some(&selector), &complete), expected, "{selector}");
        }
        assert!(selects(None, &complete));
        // Labels that are not known may match.
        let partial = Labels { complete: false, ..complete };
        for (selector, expected) in [
            (json!({"matchLabels": {"other": "web"}}), true),
            (json!({"matchLabels": {"app": "db", "other": "web"}}), false),
            (expression("In", "other", &["web"]), true),
            (expression("DoesNotExist", "other", &[]), true),
        ] {
            assert_eq!(selects(Some(&selector), &partial), expected, "{selector}");
        }
    }
}
