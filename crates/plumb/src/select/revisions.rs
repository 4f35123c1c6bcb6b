//! `--revisions` with `--source-positions` or `--source-names`.

use plumb_crd::application::ApplicationSource;

use crate::error::CommandError;

/// One revision per source: the given ones, and the target revision for the others. Empty if none is given.
pub(crate) fn revisions_of(
    sources: &[&ApplicationSource],
    given: &[String],
    positions: &[usize],
    names: &[String],
) -> Result<Vec<String>, CommandError> {
    if given.len() != positions.len() + names.len() {
        return Err(CommandError::usage("each --revisions needs one --source-positions or --source-names"));
    }
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let mut revisions: Vec<String> = sources.iter().map(|source| source.target_revision.clone()).collect();
    let by_name = names.iter().map(|name| {
        let position = sources.iter().position(|source| source.name == *name);
        position.ok_or_else(|| CommandError::usage(format!("source {name} not found")))
    });
    let by_position = positions.iter().map(|position| {
        let index = position.checked_sub(1).filter(|index| *index < sources.len());
        index.ok_or_else(|| CommandError::usage(format!("source {position} not found")))
    });
    let indices: Vec<usize> = by_name.chain(by_position).collect::<Result<_, _>>()?;
    for (index, revision) in indices.into_iter().zip(given) {
        if let Some(slot) = revisions.get_mut(index) {
            slot.clone_from(revision);
        }
    }
    Ok(revisions)
}
