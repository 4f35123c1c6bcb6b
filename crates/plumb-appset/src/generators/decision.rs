//! `clusterDecisionResource`: clusters that another object names.

use plumb_crd::application_set::ClusterDecisionResourceGenerator;
use serde_json::{Value as Json, json};

use super::clusters::IN_CLUSTER_SERVER;
use super::entry::Context;
use super::list::json_type;
use super::values;
use crate::error::GenerationError;
use crate::params::{Data, Params};
use crate::selector;

pub(super) fn params(
    context: &Context<'_>,
    generator: &ClusterDecisionResourceGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let failed = |message: String| GenerationError::generation(message);
    let config = context
        .facts
        .config_map(&generator.config_map_ref)
        .map_err(|error| GenerationError::from(error).during("error reading configMapRef"))?;
    let field = |key: &str| config.get(key).cloned().unwrap_or_default();
    let (api_version, resource) = (field("apiVersion"), field("kind"));
    let group_version = api_version.split_once('/');
    if group_version.is_none() || resource.is_empty() {
        return Err(failed(
            "there is a problem with the apiVersion, kind or resourceName provided".to_owned(),
        ));
    }
    let has_selector = !selector::is_empty(&generator.label_selector);
    if generator.name.is_empty() != has_selector {
        let message = "there is a problem with the definition of the ClusterDecisionResource generator";
        return Err(failed(message.to_owned()));
    }
    let objects = context
        .facts
        .objects(&api_version, &resource)
        .map_err(|error| GenerationError::from(error).during("failed to get dynamic resources"))?;
    let found: Vec<Json> = objects.into_iter().filter(|object| is_wanted(generator, object)).collect();
    if found.is_empty() {
        return Err(failed("no clusterDecisionResources found".to_owned()));
    }
    let list_key =
        if field("statusListKey").is_empty() { "clusters".to_owned() } else { field("statusListKey") };
    let match_key = field("matchKey");
    if match_key.is_empty() {
        return Ok(Vec::new());
    }
    let decisions = decisions(&found, &list_key)?;
    of_decisions(context, generator, &decisions, &match_key)
}

fn is_wanted(generator: &ClusterDecisionResourceGenerator, object: &Json) -> bool {
    if !generator.name.is_empty() {
        return object["metadata"]["name"].as_str() == Some(&generator.name);
    }
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    let labels =
        labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    generator.label_selector.matches(&labels)
}

/// The lists of all objects. A status without the list is an error: an empty answer would delete Applications.
fn decisions(objects: &[Json], list_key: &str) -> Result<Vec<Json>, GenerationError> {
    let mut all = Vec::new();
    for object in objects {
        let status = object.get("status").filter(|status| **status != json!(null) && **status != json!({}));
        let Some(status) = status else { continue };
        let Some(list) = status.get(list_key).and_then(Json::as_array) else {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(GenerationError::generation(format!(
                "the status of {name} has no list \"{list_key}\"; set statusListKey in the ConfigMap"
            )));
        };
        if let Some(wrong) = list.iter().find(|decision| !decision.is_object()) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let found = json_type(wrong);
            return Err(GenerationError::generation(format!(
                "the list \"{list_key}\" in the status of {name} has an entry of type {found}; each must be a map with matchKey"
            )));
        }
        all.extend(list.iter().cloned());
    }
    Ok(all)
}

fn of_decisions(
    context: &Context<'_>,
    generator: &ClusterDecisionResourceGenerator,
    decisions: &[Json],
    match_key: &str,
) -> Result<Vec<Params>, GenerationError> {
    let clusters = context.facts.clusters()?;
    // A Secret of the local cluster gives it another name.
    let has_local = clusters.iter().any(|cluster| cluster.server == IN_CLUSTER_SERVER);
    let mut sets = Vec::new();
    for decision in decisions {
        let wanted = decision.get(match_key).filter(|value| !value.is_null());
        let Some(wanted) = wanted.map(|value| Data::from_object(value).shown()) else { continue };
        let wanted = wanted.as_str();
        let known =
            clusters.iter().find(|cluster| cluster.name == wanted).map(|cluster| cluster.server.as_str());
        let Some(server) = known.or((wanted == "in-cluster" && !has_local).then_some(IN_CLUSTER_SERVER))
        else {
            continue;
        };
        let mut params = Params::from([
            ("name".to_owned(), Data::from(wanted)),
            ("server".to_owned(), Data::from(server)),
        ]);
        for (key, value) in decision.as_object().into_iter().flatten() {
            params.insert(key.clone(), Data::Text(Data::from_object(value).shown()));
        }
        // These values are not rendered.
        values::insert(context.is_go(), generator.values.clone(), &mut params);
        sets.push(params);
    }
    Ok(sets)
}
