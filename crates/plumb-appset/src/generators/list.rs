//! `list`: fixed parameters.

use std::collections::BTreeMap;

use plumb_core::yaml::{Limits, parse_first};
use plumb_crd::application_set::ListGenerator;
use serde_json::Value as Json;

use super::entry::Context;
use crate::error::GenerationError;
use crate::params::{Data, Params};

pub(super) fn params(context: &Context<'_>, list: &ListGenerator) -> Result<Vec<Params>, GenerationError> {
    let mut sets = Vec::new();
    for element in &list.elements {
        let Json::Object(map) = &element.0 else {
            if element.0.is_null() {
                sets.push(Params::new());
                continue;
            }
            return Err(GenerationError::generation(format!(
                "error unmarshling list element json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(&element.0)
            )));
        };
        sets.push(if context.is_go() {
            map.iter().map(|(key, value)| (key.clone(), Data::from_json(value))).collect()
        } else {
            flat(map)?
        });
    }
    sets.extend(from_yaml(&list.elements_yaml)?);
    Ok(sets)
}

/// Without Go templates every value is a string, and `values` a map of strings.
fn flat(map: &serde_json::Map<String, Json>) -> Result<Params, GenerationError> {
    let mut params = Params::new();
    for (key, value) in map {
        if key == "values" {
            let values = value.as_object();
            let values = values.ok_or_else(|| GenerationError::generation("error parsing values map"))?;
            for (inner, value) in values {
                let text = value.as_str();
                let text = text
                    .ok_or_else(|| GenerationError::generation("error parsing value as string %!w(<nil>)"))?;
                params.insert(format!("values.{inner}"), Data::from(text));
            }
        } else {
            let text = value.as_str();
            let text =
                text.ok_or_else(|| GenerationError::generation("error parsing value as string %!w(<nil>)"))?;
            params.insert(key.clone(), Data::from(text));
        }
    }
    Ok(params)
}

fn from_yaml(text: &str) -> Result<Vec<Params>, GenerationError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |reason: String| {
        GenerationError::generation(format!("error unmarshling decoded ElementsYaml {reason}"))
    };
    let document = parse_first(text, &Limits::default()).map_err(|error| failed(format!("yaml: {error}")))?;
    let items = match document.map(|document| document.value) {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(items)) => items,
        Some(other) => {
            let found = json_type(&other);
            let reason =
                format!("json: cannot unmarshal {found} into Go value of type []map[string]interface {{}}");
            return Err(failed(format!("error unmarshaling JSON: while decoding JSON: {reason}")));
        }
    };
    let read = |item: &Json| match Data::from_json(item) {
        Data::Map(map) => Ok(map),
        Data::Null => Ok(BTreeMap::new()),
        _ => {
            let found = json_type(item);
            let reason =
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(failed(format!("error unmarshaling JSON: while decoding JSON: {reason}")))
        }
    };
    items.iter().map(read).collect()
}

pub(super) fn json_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}
