//! `templatePatch`: a strategic merge patch on an Application.

use plumb_core::yaml::{Limits, parse_first};
use plumb_crd::application::{ApplicationSpec, Operation};
use plumb_crd::metadata::Metadata;
use plumb_crd::wire::Wire;
use serde_json::{Map, Value as Json};

/// Applies the rendered text of a patch.
pub(super) fn apply(application: &mut Json, text: &str) -> Result<(), String> {
    let invalid =
        |reason: String| format!("invalid templatePatch {}: {reason}", plumb_gotemplate::format::quote(text));
    let patch = read(text).map_err(invalid)?;
    let Some(patch) = patch.as_object() else {
        return if patch.is_null() { Ok(()) } else { Err(invalid("a patch must be a map".to_owned())) };
    };
    check(patch).map_err(invalid)?;
    let project = application["spec"]["project"].clone();
    let mut merged = merge(application.as_object().cloned().unwrap_or_default(), patch, "")
        .map_err(|reason| format!("error while applying templatePatch: {reason}"))?;
    merged.retain(|key, _| matches!(key.as_str(), "metadata" | "spec" | "operation"));
    *application = Json::Object(merged);
    if !application["spec"].is_object() {
        application["spec"] = Json::Object(Map::new());
    }
    application["spec"]["project"] = project;
    if !application["metadata"].is_object() {
        application["metadata"] = serde_json::json!({"name": ""});
    }
    if let Some(metadata) = application["metadata"].as_object_mut() {
        let known = |key: &str| {
            matches!(
                key,
                "name"
                    | "namespace"
                    | "labels"
                    | "annotations"
                    | "finalizers"
                    | "ownerReferences"
                    | "generateName"
            )
        };
        metadata.retain(|key, _| known(key));
        metadata.entry("name").or_insert_with(|| Json::from(""));
    }
    Ok(())
}

fn read(text: &str) -> Result<Json, String> {
    if text.trim_start().starts_with('{') {
        let mut patch = serde_json::from_str(text).map_err(|error| error.to_string())?;
        whole_numbers(&mut patch);
        return Ok(patch);
    }
    let document = parse_first(text, &Limits::default()).map_err(|error| format!("yaml: {error}"))?;
    Ok(document.map_or(Json::Null, |document| document.value))
}

/// `1.0` as `1`. The API server stores it so: the patch would differ from the Application for ever.
fn whole_numbers(json: &mut Json) {
    match json {
        Json::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.abs() < 1e15);
            if let Some(whole) = whole.and_then(|float| format!("{float}").parse::<i64>().ok()) {
                *json = Json::from(whole);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(whole_numbers),
        Json::Object(map) => map.values_mut().for_each(whole_numbers),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// The patch must have the types of an Application.
fn check(patch: &Map<String, Json>) -> Result<(), String> {
    let at = |key: &str| patch.get(key).filter(|value| !value.is_null());
    if let Some(metadata) = at("metadata") {
        checked::<Metadata>(metadata)?;
    }
    if let Some(spec) = at("spec") {
        checked::<ApplicationSpec>(spec)?;
    }
    if let Some(operation) = at("operation") {
        checked::<Operation>(operation)?;
    }
    Ok(())
}

fn checked<T: Wire>(value: &Json) -> Result<(), String> {
    T::read(value).map(|_| ()).map_err(|error| format!("json: cannot unmarshal: {error}"))
}

/// Merges a map as Kubernetes does. Lists are replaced, but for the two that Kubernetes merges.
fn merge(
    mut base: Map<String, Json>,
    patch: &Map<String, Json>,
    at: &str,
) -> Result<Map<String, Json>, String> {
    match patch.get(DIRECTIVE) {
        Some(directive) if directive == "replace" => return Ok(without_directive(patch)),
        Some(directive) if directive == "delete" => return Ok(Map::new()),
        Some(directive) => return Err(format!("unknown patch type: {directive}")),
        None => {}
    }
    retain_keys(&mut base, patch)?;
    for (key, value) in patch {
        let place = format!("{at}/{key}");
        if let Some(list) = key.strip_prefix(DELETE_FROM_LIST) {
            let unwanted = value.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(items) = base.get_mut(list).and_then(Json::as_array_mut) {
                items.retain(|item| !unwanted.contains(item));
            }
            continue;
        }
        if key == RETAIN_KEYS || key.starts_with(SET_ORDER) {
            continue;
        }
        let merged = match (base.get(key), value) {
            (_, Json::Null) => None,
            (Some(Json::Object(old)), Json::Object(new)) => {
                if key == "valuesObject" {
                    check_raw(old, new)?;
                }
                Some(Json::Object(merge(old.clone(), new, &place)?))
            }
            (Some(Json::Array(old)), Json::Array(new)) if MERGED_LISTS.contains(&place.as_str()) => {
                let kept = old.iter().filter(|item| !new.contains(item));
                Some(new.iter().chain(kept).cloned().collect())
            }
            (Some(Json::Array(_)), Json::Array(_)) => Some(value.clone()),
            _ => without_directives(value),
        };
        match merged {
            Some(merged) => base.insert(key.clone(), merged),
            None => base.remove(key),
        };
    }
    Ok(base)
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const MERGED_LISTS: [&str; 2] = ["/metadata/finalizers", "/metadata/ownerReferences"];

/// Removes all fields that `$retainKeys` does not list.
fn retain_keys(base: &mut Map<String, Json>, patch: &Map<String, Json>) -> Result<(), String> {
    let Some(listed) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || "invalid patch format of retainKeys".to_owned();
    let listed: Vec<&str> = listed.as_array().ok_or_else(wrong)?.iter().filter_map(Json::as_str).collect();
    let is_free = |key: &str, value: &Json| {
        value.is_null()
            || key == RETAIN_KEYS
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(SET_ORDER)
    };
    if patch.iter().any(|(key, value)| !is_free(key, value) && !listed.contains(&key.as_str())) {
        return Err(wrong());
    }
    base.retain(|key, _| listed.contains(&key.as_str()));
    Ok(())
}

/// A value that takes the place of none, or of one of another type: without nulls, and without what has a directive.
fn without_directives(value: &Json) -> Option<Json> {
    match value {
        Json::Object(map) if map.contains_key(DIRECTIVE) => None,
        Json::Object(map) => {
            let kept = map.iter().filter(|(_, item)| !item.is_null());
            Some(Json::Object(
                kept.filter_map(|(key, item)| Some((key.clone(), without_directives(item)?))).collect(),
            ))
        }
        Json::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}

/// Argo CD's patch knows no fields below `valuesObject`.
fn check_raw(old: &Map<String, Json>, new: &Map<String, Json>) -> Result<(), String> {
    let is_deep = |key: &String, value: &Json| match old.get(key) {
        Some(known) => (known.is_object() && value.is_object()) || (known.is_array() && value.is_array()),
        None => false,
    };
    match new.iter().find(|(key, value)| is_deep(key, value)) {
        Some((key, _)) if !new.contains_key(DIRECTIVE) => {
            Err(format!("unable to find api field in struct RawExtension for the json field \"{key}\""))
        }
        _ => Ok(()),
    }
}

fn without_directive(patch: &Map<String, Json>) -> Map<String, Json> {
    patch
        .iter()
        .filter(|(key, _)| *key != DIRECTIVE)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(base: &Json, patch: &Json) -> Result<Json, String> {
        let map = |value: &Json| value.as_object().cloned().unwrap_or_default();
        merge(map(base), &map(patch), "").map(Json::Object)
    }

    #[test]
    fn directives_work_as_in_kubernetes() {
        let base = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"syncPolicy": {"automated": {"prune": true}, "retry": {"limit": 1}}}});
        let cases = [
            (
                json!({"spec": {"syncPolicy": {"automated": null}}}),
                json!({"syncPolicy": {"retry": {"limit": 1}}}),
            ),
            (
                json!({"spec": {"syncPolicy": {"$patch": "replace", "syncOptions": ["x"]}}}),
                json!({"syncPolicy": {"syncOptions": ["x"]}}),
            ),
            // The map stays, empty.
            (json!({"spec": {"syncPolicy": {"$patch": "delete"}}}), json!({"syncPolicy": {}})),
            (
                json!({"spec": {"$retainKeys": ["source"], "source": {"path": "p"}}}),
                json!({"source": {"path": "p"}}),
            ),
            // What is not there yet cannot be replaced or deleted: Kubernetes drops such a map.
            (
                json!({"spec": {"source": {"$patch": "replace", "path": "p"}, "sources": [{"$patch": "delete"}, {"path": "q", "ref": null}]}}),
                json!({"syncPolicy": {"automated": {"prune": true}, "retry": {"limit": 1}}, "sources": [{"path": "q"}]}),
            ),
        ];
        for (patch, expected) in cases {
            assert_eq!(merged(&base, &patch).unwrap()["spec"], expected, "{patch}");
        }
        let lists = [
            (json!({"metadata": {"finalizers": ["c", "a"]}}), json!(["c", "a", "b"])),
            (json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}), json!(["b"])),
        ];
        for (patch, expected) in lists {
            assert_eq!(merged(&base, &patch).unwrap()["metadata"]["finalizers"], expected, "{patch}");
        }
        for wrong in [
            json!({"$patch": "merge"}),
            json!({"spec": {"$patch": 1}}),
            json!({"spec": {"$retainKeys": ["source"], "project": "x"}}),
        ] {
            assert!(merged(&base, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_of_json_are_integers() {
        let patch = read(r#"{"a": [1.0, 1.5, 2, 1e3, -0.0, 1e300], "b": {"c": 3.0}}"#).unwrap();
        assert_eq!(patch.to_string(), r#"{"a":[1,1.5,2,1000,0,1e+300],"b":{"c":3}}"#);
    }

    #[test]
    fn nothing_deep_is_merged_in_a_values_object() {
        let base = json!({"valuesObject": {"a": {"b": 1}, "c": [1], "d": 1}});
        let merge = |patch: Json| merged(&base, &json!({"valuesObject": patch}));
        assert!(merge(json!({"a": {"x": 1}})).unwrap_err().contains("unable to find api field"));
        assert!(merge(json!({"c": [2]})).is_err());
        let ok = merge(json!({"a": null, "c": null, "d": 2, "e": {"f": [1]}})).unwrap();
        assert_eq!(ok["valuesObject"], json!({"d": 2, "e": {"f": [1]}}));
    }
}
