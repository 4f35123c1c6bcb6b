//! JSON schemas of the kinds, for editors and for tools such as kubeconform.

use serde_json::{Map, Value, json};

use crate::crds;

/// The schema of a kind, by its name in any case: `application`, `ApplicationSet`. `None` if it is not one of ours.
pub fn json_schema(kind: &str) -> Option<Value> {
    let crd = crds().into_iter().find(|crd| {
        crd["spec"]["names"]["kind"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(kind))
    })?;
    Some(of_crd(&crd))
}

/// The names of the kinds that have a schema.
pub fn schema_kinds() -> Vec<String> {
    let name = |crd: &Value| crd["spec"]["names"]["kind"].as_str().map(str::to_owned);
    crds().iter().filter_map(name).collect()
}

fn of_crd(crd: &Value) -> Value {
    let text = |place: &str| crd.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let version = text("/spec/versions/0/name");
    let mut schema = converted(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(text("/spec/names/kind"));
    schema["properties"]["apiVersion"] = json!({"const": format!("{}/{version}", text("/spec/group"))});
    schema["properties"]["kind"] = json!({"const": text("/spec/names/kind")});
    // Every field of Kubernetes' metadata is allowed.
    schema["properties"]["metadata"] = json!({"type": "object"});
    schema["required"] = json!(["apiVersion", "kind", "metadata"]);
    schema
}

/// The schema of a definition as a JSON schema: keys of Kubernetes are translated, and unknown fields are refused, as
/// the API server's strict validation refuses them.
fn converted(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else { return schema.clone() };
    if map.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        return json!({"type": ["integer", "string"]});
    }
    let keeps_unknown = map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    let mut result = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            _ if key.starts_with("x-kubernetes-") || key == "nullable" => continue,
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                Value::Object(fields.map(|(name, field)| (name.clone(), converted(field))).collect())
            }
            "items" | "additionalProperties" | "not" => converted(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().map(converted).collect(),
            _ => value.clone(),
        };
        result.insert(key.clone(), value);
    }
    if map.get("nullable") == Some(&json!(true))
        && let Some(kind) = result.get("type").cloned()
    {
        result.insert("type".to_owned(), json!([kind, "null"]));
    }
    let is_closed = result.contains_key("properties") && !result.contains_key("additionalProperties");
    if is_closed && !keeps_unknown {
        result.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_field_is_refused_and_a_free_one_is_not() {
        let schema = json_schema("application").expect("a kind of ours");
        let source = &schema["properties"]["spec"]["properties"]["source"];
        assert!(source["properties"]["targetRevision"].is_object(), "{source}");
        assert_eq!(source["additionalProperties"], false);
        assert!(!schema.to_string().contains("x-kubernetes-"), "words of Kubernetes are translated");
        assert_eq!(json_schema("Pod"), None);
        assert_eq!(schema_kinds(), ["Application", "AppProject", "ApplicationSet", "DriftReport"]);
    }

    #[test]
    fn numbers_that_may_be_texts_and_empty_values_are_kept() {
        let crd = json!({"type": "object", "properties": {
            "a": {"x-kubernetes-int-or-string": true},
            "b": {"type": "string", "nullable": true},
            "c": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true},
        }});
        assert_eq!(
            converted(&crd)["properties"],
            json!({"a": {"type": ["integer", "string"]}, "b": {"type": ["string", "null"]},
                "c": {"type": "object", "properties": {}}})
        );
    }
}
