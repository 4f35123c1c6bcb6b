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
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let document = parse_first(text, &Limits::default()).map_err(|error| format!("yaml: {error}"))?;
    Ok(document.map_or(Json::Null, |document| document.value))
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

/// Merges a map. Lists are replaced, but for the two that Kubernetes merges.
fn merge(
    mut base: Map<String, Json>,
    patch: &Map<String, Json>,
    at: &str,
) -> Result<Map<String, Json>, String> {
    match patch.get("$patch").and_then(Json::as_str) {
        Some("replace") => return Ok(without_directive(patch)),
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => return Err(format!("unknown patch type {other}")),
    }
    for (key, value) in patch {
        if key == "$patch" {
            continue;
        }
        let inner_path = format!("{at}/{key}");
        match (base.get(key), value) {
            (_, Json::Null) => {
                base.remove(key);
            }
            (Some(Json::Object(old)), Json::Object(new)) => {
                if key == "valuesObject" {
                    check_raw(old, new)?;
                }
                let deletes = new.get("$patch").and_then(Json::as_str) == Some("delete");
                let merged = merge(old.clone(), new, &inner_path)?;
                if deletes {
                    base.remove(key);
                } else {
                    base.insert(key.clone(), Json::Object(merged));
                }
            }
            (_, Json::Object(new)) => {
                let merged = merge(Map::new(), new, &inner_path)?;
                base.insert(key.clone(), Json::Object(merged));
            }
            (Some(Json::Array(old)), Json::Array(new))
                if matches!(inner_path.as_str(), "/metadata/finalizers" | "/metadata/ownerReferences") =>
            {
                let kept = old.iter().filter(|item| !new.contains(item));
                base.insert(key.clone(), new.iter().chain(kept).cloned().collect());
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(base)
}

/// Argo CD's patch knows no fields below `valuesObject`.
fn check_raw(old: &Map<String, Json>, new: &Map<String, Json>) -> Result<(), String> {
    let both =
        new.iter().find(|(key, value)| value.is_object() && old.get(*key).is_some_and(Json::is_object));
    match both {
        Some((key, _)) => {
            Err(format!("unable to find api field in struct RawExtension for the json field \"{key}\""))
        }
        None => Ok(()),
    }
}

fn without_directive(patch: &Map<String, Json>) -> Map<String, Json> {
    patch
        .iter()
        .filter(|(key, _)| *key != "$patch")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
