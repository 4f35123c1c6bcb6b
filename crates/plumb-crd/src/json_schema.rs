//! JSON schemas of the kinds, for editors and for tools such as kubeconform.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::crds;
use crate::settings::{Settings, ValueForm, plugin_schema};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// What has a schema, and is no kind of ours.
const PLUGIN: &str = "ConfigManagementPlugin";
const SETTINGS: &str = "ConfigMap";

/// The schema of a kind, by its name in any case: `application`, `ApplicationSet`, `plugin` (an entry of
/// `plumb-plugins`), `settings` (the `ConfigMap`s with settings). `None` if there is none.
pub fn json_schema(name: &str) -> Option<Value> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if is("plugin") || is(PLUGIN) {
        return Some(of_plugin());
    }
    if is("settings") || is(SETTINGS) {
        return Some(of_settings());
    }
    let crd = crds().into_iter().find(|crd| crd["spec"]["names"]["kind"].as_str().is_some_and(is))?;
    Some(of_crd(&crd))
}

/// Kind and version of everything that has a schema.
pub fn schema_kinds() -> Vec<(String, &'static str)> {
    let name = |crd: &Value| Some((crd["spec"]["names"]["kind"].as_str()?.to_owned(), "v1alpha1"));
    let ours = crds();
    let others = [(PLUGIN.to_owned(), "v1alpha1"), (SETTINGS.to_owned(), "v1")];
    ours.iter().filter_map(name).chain(others).collect()
}

fn of_plugin() -> Value {
    let mut schema = converted(&plugin_schema());
    schema["$schema"] = json!(DRAFT);
    schema["title"] = json!(PLUGIN);
    schema["properties"]["apiVersion"] = json!({"const": "argoproj.io/v1alpha1"});
    schema["properties"]["kind"] = json!({"const": PLUGIN});
    schema["properties"]["metadata"] = json!({"type": "object", "required": ["name"]});
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    schema["properties"]["spec"]["required"] = json!(["generate"]);
    schema
}

/// Any `ConfigMap`; in those with settings, the values of the keys that plumb reads have their form.
fn of_settings() -> Value {
    let mut by_object: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (object, key, form) in Settings::keys() {
        by_object.entry(object).or_default().insert(key, of_value(form));
    }
    let conditions = by_object.into_iter().map(|(object, keys)| {
        let is_object = json!({"properties": {"metadata": {"properties": {"name": {"const": object}}}}});
        json!({"if": is_object, "then": {"properties": {"data": {"properties": keys}}}})
    });
    json!({
        "$schema": DRAFT,
        "title": SETTINGS,
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"const": "v1"},
            "kind": {"const": SETTINGS},
            "metadata": {"type": "object", "required": ["name"]},
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "binaryData": {"type": "object", "additionalProperties": {"type": "string"}},
            "immutable": {"type": "boolean"},
        },
        "additionalProperties": false,
        "allOf": conditions.collect::<Vec<_>>(),
    })
}

fn of_value(form: ValueForm) -> Value {
    let pattern = match form {
        ValueForm::Text => return json!({"type": "string"}),
        ValueForm::Bool => "(1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)?",
        ValueForm::Number => "([+]?[0-9]+)?",
        ValueForm::Duration => "([+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+))?",
        ValueForm::Bytes => "([0-9]+(k|K|M|G|Ki|Mi|Gi)?)?",
    };
    json!({"type": "string", "pattern": format!("^\\s*{pattern}\\s*$")})
}

fn of_crd(crd: &Value) -> Value {
    let text = |place: &str| crd.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let version = text("/spec/versions/0/name");
    let mut schema = converted(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    schema["$schema"] = json!(DRAFT);
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
        let kinds: Vec<String> = schema_kinds().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(
            kinds,
            [
                "Application",
                "AppProject",
                "ApplicationSet",
                "DriftReport",
                "ConfigManagementPlugin",
                "ConfigMap"
            ]
        );
        assert!(kinds.iter().all(|kind| json_schema(kind).is_some()));
    }

    #[test]
    fn settings_have_the_form_that_plumb_reads() {
        let schema = json_schema("settings").expect("a schema");
        let of = |object: &str| {
            let all = schema["allOf"].as_array().expect("conditions").iter();
            let is_it =
                |part: &&Value| part["if"]["properties"]["metadata"]["properties"]["name"]["const"] == object;
            all.clone().find(is_it).expect("the object")["then"]["properties"]["data"]["properties"].clone()
        };
        let (cm, parameters) = (of("argocd-cm"), of("argocd-cmd-params-cm"));
        for (map, key, word) in [
            (&cm, "timeout.reconciliation", "ns|us"),
            (&cm, "helm.enable", "true"),
            (&cm, "webhook.refresh.jitter.threshold", "[0-9]+"),
            (&parameters, "controller.status.processors", "[0-9]+"),
            (&parameters, "reposerver.max.combined.directory.manifests.size", "Mi"),
            (&parameters, "applicationsetcontroller.requeue.after", "ns|us"),
        ] {
            let pattern = map[key]["pattern"].as_str().unwrap_or_default();
            assert!(pattern.contains(word), "{key}: {}", map[key]);
        }
        assert_eq!(cm["resource.exclusions"], json!({"type": "string"}));
    }

    #[test]
    fn a_plugin_may_have_what_only_argo_cd_reads() {
        let spec = &json_schema("plugin").expect("a schema")["properties"]["spec"];
        assert_eq!(spec["additionalProperties"], false);
        for field in ["generate", "init", "discover", "parameters", "preserveFileMode"] {
            assert!(spec["properties"][field].is_object(), "{field}");
        }
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
