//! `matrix` and `merge`: generators of generators.

use std::collections::{BTreeMap, BTreeSet};

use plumb_crd::application_set::{ApplicationSetGenerator, MatrixGenerator, MergeGenerator};
use plumb_crd::wire::{RawMap, Wire as _};
use serde_json::Value as Json;

use super::entry::{Context, MAX_SETS, transform};
use crate::error::{GenerationError, Reason};
use crate::params::{self, Data, Params};

/// Every combination of the sets of two generators. The second is rendered with each set of the first.
pub(super) fn matrix(
    context: &Context<'_>,
    matrix: &MatrixGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let [first, second] = matrix.generators.as_slice() else {
        return Err(GenerationError::generation(if matrix.generators.len() < 2 {
            "found less than two generators, Matrix support only two"
        } else {
            "found more than two generators, Matrix support only two"
        }));
    };
    let first_sets = child(context, first, None).map_err(|error| {
        error.during("error failed to get params for first generator in matrix generator")
    })?;
    let mut combined: Vec<Params> = Vec::new();
    let mut unanswered = None;
    for before in first_sets {
        let second_sets = match child(context, second, Some(&before)) {
            Ok(sets) => sets,
            // The others may need more facts: all are gathered at once.
            Err(error) if error.reason == Reason::Unanswered => {
                unanswered = Some(error);
                continue;
            }
            Err(error) => {
                return Err(error.during("failed to get params for second generator in the matrix generator"));
            }
        };
        for after in second_sets {
            if combined.len() >= MAX_SETS {
                return Err(GenerationError::generation(format!(
                    "the matrix has more than {MAX_SETS} combinations; split the ApplicationSet"
                )));
            }
            let set = combine(context.is_go(), &before, &after)?;
            context.renderer.budget.allocate(params::weight(&set)).map_err(GenerationError::generation)?;
            combined.push(set);
        }
    }
    unanswered.map_or(Ok(combined), Err)
}

fn combine(is_go: bool, first: &Params, second: &Params) -> Result<Params, GenerationError> {
    const DURING: &str = "failed to combine string maps with merging params for the matrix generator";
    if is_go {
        // The first generator wins, so it is merged over the second.
        let mut combined = second.clone();
        params::merge(&mut combined, first)
            .map_err(|error| GenerationError::generation(format!("{DURING}: {error}")))?;
        return Ok(combined);
    }
    let mut combined: Params =
        first.iter().map(|(key, data)| (key.clone(), Data::Text(data.shown()))).collect();
    for (key, data) in second {
        let text = data.shown();
        match combined.get(key) {
            Some(Data::Text(known)) if *known != text => {
                return Err(GenerationError::generation(format!(
                    "{DURING}: found duplicate key {key} with different value, a: {known} ,b: {text}"
                )));
            }
            _ => {
                combined.insert(key.clone(), Data::Text(text));
            }
        }
    }
    Ok(combined)
}

/// The sets of the first generator, overridden by sets of the others that have the same keys.
pub(super) fn merge(context: &Context<'_>, merge: &MergeGenerator) -> Result<Vec<Params>, GenerationError> {
    if merge.generators.len() < 2 {
        return Err(GenerationError::generation(
            "found less than two generators, Merge requires two or more",
        ));
    }
    let count = merge.generators.len();
    let mut all = Vec::new();
    for (index, generator) in merge.generators.iter().enumerate() {
        let sets = child(context, generator, None).map_err(|error| {
            let number = index + 1;
            error.during(&format!(
                "error getting param sets from generators: error getting params from generator {number} of {count}"
            ))
        })?;
        all.push(sets);
    }
    let during = |error: GenerationError| error.during("error getting param sets by merge key");
    let mut by_key = all.into_iter().map(|sets| keyed(sets, &merge.merge_keys).map_err(during));
    let mut base = by_key.next().transpose()?.unwrap_or_default();
    for over in by_key {
        let over: BTreeMap<String, Params> = over?.into_iter().collect();
        for (key, set) in &mut base {
            let Some(values) = over.get(key) else { continue };
            if context.is_go() {
                params::merge(set, values).map_err(|error| {
                    GenerationError::generation(format!(
                        "error merging base param set with override param set: {error}"
                    ))
                })?;
            } else {
                set.extend(values.iter().map(|(key, data)| (key.clone(), data.clone())));
            }
        }
    }
    Ok(base.into_iter().map(|(_, set)| set).collect())
}

/// The sets with the JSON of their keys. An absent key is null.
fn keyed(sets: Vec<Params>, keys: &[String]) -> Result<Vec<(String, Params)>, GenerationError> {
    if keys.is_empty() {
        return Err(GenerationError::generation("no merge keys were specified, Merge requires at least one"));
    }
    let mut seen = BTreeSet::new();
    let mut keyed = Vec::new();
    for set in sets {
        let identity: serde_json::Map<String, Json> =
            keys.iter().map(|key| (key.clone(), set.get(key).map_or(Json::Null, Data::to_json))).collect();
        let identity = Json::Object(identity).to_string();
        if !seen.insert(identity.clone()) {
            return Err(GenerationError::generation(format!(
                "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets \
                 to be unique. Duplicate key was {identity}"
            )));
        }
        keyed.push((identity, set));
    }
    Ok(keyed)
}

/// The sets of a child: exactly one generator, of which matrix and merge may nest once.
pub(super) fn child(
    context: &Context<'_>,
    raw: &RawMap,
    before: Option<&Params>,
) -> Result<Vec<Params>, GenerationError> {
    let json = Json::Object(raw.0.clone());
    let entry = ApplicationSetGenerator::read(&without_templates(&json))
        .map_err(|error| GenerationError::generation(format!("cannot read a child generator: {error}")))?;
    let kinds = [
        entry.list.is_some(),
        entry.clusters.is_some(),
        entry.git.is_some(),
        entry.scm_provider.is_some(),
        entry.cluster_decision_resource.is_some(),
        entry.pull_request.is_some(),
        entry.matrix.is_some(),
        entry.merge.is_some(),
        entry.plugin.is_some(),
    ];
    match kinds.iter().filter(|set| **set).count() {
        0 => return Err(GenerationError::generation("child generator generated no parameters")),
        1 => {}
        _ => return Err(GenerationError::generation("found more than one generator in matrix.Generators")),
    }
    let produced = transform(context, &entry, before)
        .map_err(|error| error.during("child generator returned an error on parameter generation"))?;
    Ok(produced.into_iter().flat_map(|one| one.params).collect())
}

/// Templates of children are ignored. Below the second level matrix and merge are unknown.
pub(super) fn without_templates(json: &Json) -> Json {
    let mut json = json.clone();
    for kind in json.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some(generator) = kind.as_object_mut() {
            generator.remove("template");
        }
    }
    for kind in ["matrix", "merge"] {
        let children = json.get_mut(kind).and_then(|nested| nested.get_mut("generators"));
        for child in children.and_then(Json::as_array_mut).into_iter().flatten() {
            if let Some(child) = child.as_object_mut() {
                child.retain(|key, _| key != "matrix" && key != "merge");
            }
        }
    }
    json
}
