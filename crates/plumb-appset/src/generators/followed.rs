//! What the generators of a set follow outside of the cluster.

use plumb_crd::application_set::{ApplicationSetGenerator, MatrixGenerator};
use plumb_crd::wire::{RawMap, Wire as _};
use serde_json::Value as Json;

use super::combine::{child, without_templates};
use super::entry::{Context, interpolate};
use crate::follows::{Follows, RequestsOf};

/// Where an entry stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In `spec.generators`.
    Top,
    /// The first of a matrix, or one of a merge. As in Argo CD, a plugin at this place follows nothing.
    Inner,
    /// The second of a matrix.
    Second,
}

/// Adds what an entry follows. A matrix whose first generator fails follows only that one.
pub(crate) fn followed(
    context: &Context<'_>,
    entry: &ApplicationSetGenerator,
    place: Place,
    found: &mut Follows,
) {
    if let Some(git) = &entry.git {
        found.git.insert((git.repo_url.clone(), git.revision.clone()));
    }
    if let Some(generator) = &entry.pull_request {
        found.pull_requests.extend(RequestsOf::of(generator));
    }
    found.plugin |= entry.plugin.is_some() && place != Place::Inner;
    for generator in entry.merge.iter().flat_map(|merge| &merge.generators) {
        if let Some(entry) = read(generator) {
            followed(context, &entry, Place::Inner, found);
        }
    }
    if let Some(matrix) = &entry.matrix {
        of_matrix(context, matrix, found);
    }
}

fn of_matrix(context: &Context<'_>, matrix: &MatrixGenerator, found: &mut Follows) {
    let [first, second, ..] = matrix.generators.as_slice() else { return };
    let (Some(first_entry), Some(second_entry)) = (read(first), read(second)) else { return };
    followed(context, &first_entry, Place::Inner, found);
    let follows_none = second_entry.git.is_none()
        && second_entry.pull_request.is_none()
        && second_entry.plugin.is_none()
        && second_entry.merge.is_none()
        && second_entry.matrix.is_none();
    if follows_none {
        return;
    }
    let Ok(sets) = child(context, first, None) else { return };
    if sets.is_empty() || !Json::Object(second.0.clone()).to_string().contains("{{") {
        followed(context, &second_entry, Place::Second, found);
        return;
    }
    for params in sets {
        let Ok(entry) = interpolate(context, &second_entry, &params) else { return };
        followed(context, &entry, Place::Second, found);
    }
}

fn read(generator: &RawMap) -> Option<ApplicationSetGenerator> {
    ApplicationSetGenerator::read(&without_templates(&Json::Object(generator.0.clone()))).ok()
}
