//! Which generated Applications may be written.

use std::collections::{BTreeMap, BTreeSet};

use plumb_crd::ApplicationSet;
use serde_json::Value as Json;

use super::destinations::Destinations;

/// The name of a generated Application.
pub(super) fn name_of(application: &Json) -> &str {
    application["metadata"]["name"].as_str().unwrap_or_default()
}

/// What is wrong with each name. Two Applications of one name are both wrong.
pub(super) fn check(
    set: &ApplicationSet,
    generated: &[Json],
    destinations: &Destinations,
    project_exists: &dyn Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let mut wrong = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for application in generated {
        let objection = of_name(set, application, &mut seen)
            .or_else(|| of_spec(&application["spec"], destinations, project_exists));
        if let Some(objection) = objection {
            wrong.insert(name_of(application).to_owned(), objection);
        }
    }
    wrong
}

/// What is wrong with the names alone, in the order of the names.
pub fn wrong_names(set: &ApplicationSet, generated: &[Json]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let wrong: BTreeMap<&str, String> = generated
        .iter()
        .filter_map(|application| Some((name_of(application), of_name(set, application, &mut seen)?)))
        .collect();
    wrong.into_values().collect()
}

/// `seen` has the names so far.
fn of_name<'a>(set: &ApplicationSet, application: &'a Json, seen: &mut BTreeSet<&'a str>) -> Option<String> {
    let (set_name, name) = (&set.metadata.name, name_of(application));
    if name.is_empty() {
        return Some(format!(
            "ApplicationSet {set_name} contains an application with no name; a name must be set in the template's \
             metadata.name or via a templatePatch (generateName is not supported)"
        ));
    }
    (!seen.insert(name))
        .then(|| format!("ApplicationSet {set_name} contains applications with duplicate name: {name}"))
}

fn of_spec(
    spec: &Json,
    destinations: &Destinations,
    project_exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let project = spec["project"].as_str().unwrap_or_default();
    if project.is_empty() || !project_exists(project) {
        return Some(format!("application references project {project} which does not exist"));
    }
    destinations
        .objection(&spec["destination"])
        .map(|objection| format!("application destination spec is invalid: {objection}"))
}

/// All objections in one message: the last one, and how many others there are.
pub(super) fn summary(wrong: &BTreeMap<String, String>) -> Option<String> {
    let message = wrong.values().next_back()?;
    Some(match wrong.len() {
        1 => message.clone(),
        n => format!("{message} (and {} more)", n - 1),
    })
}
