//! The template of a generator over that of the set.

use plumb_crd::application_set::ApplicationSetTemplate;
use plumb_crd::wire::{RawMap, Wire as _};
use serde_json::Value as Json;

use crate::error::GenerationError;

/// The set's template, with what the generator's template sets.
pub(crate) fn merged(
    of_set: &ApplicationSetTemplate,
    of_generator: Option<&RawMap>,
) -> Result<ApplicationSetTemplate, GenerationError> {
    let Some(over) = of_generator else { return Ok(of_set.clone()) };
    let read = |json: &Json| ApplicationSetTemplate::read(json);
    let invalid =
        |error| GenerationError::generation(format!("cannot read the template of a generator: {error}"));
    let mut template = read(&Json::Object(over.0.clone())).map_err(invalid)?.write();
    fill(&mut template, &of_set.write());
    read(&template).map_err(invalid)
}

/// Fills what is empty. Argo CD counts a `false` or a zero as empty here, too.
fn fill(over: &mut Json, base: &Json) {
    let (Json::Object(over), Json::Object(base)) = (over, base) else { return };
    for (key, value) in base {
        match over.get_mut(key) {
            Some(inner @ Json::Object(_)) if value.is_object() && key != "valuesObject" => fill(inner, value),
            Some(set) if !is_empty(set) => {}
            _ => {
                over.insert(key.clone(), value.clone());
            }
        }
    }
}

fn is_empty(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::Bool(truth) => !truth,
        Json::Number(number) => number.as_f64() == Some(0.0),
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
    }
}
