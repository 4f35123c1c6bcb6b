//! `values`: more parameters, rendered over those that a generator has.

use std::collections::BTreeMap;

use super::entry::Context;
use crate::error::GenerationError;
use crate::params::{Data, Params};

/// Adds `values` to a parameter set.
pub(super) fn append(
    context: &Context<'_>,
    values: &BTreeMap<String, String>,
    params: &mut Params,
) -> Result<(), GenerationError> {
    if values.is_empty() {
        return Ok(());
    }
    let failed = |error: String| {
        GenerationError::generation(format!(
            "failed to replace templated string: failed to replace templated string with rendered values: {error}"
        ))
    };
    let session = context.renderer.session(params).map_err(failed)?;
    let rendered: BTreeMap<String, String> = values
        .iter()
        .map(|(key, text)| Ok((key.clone(), session.text(text)?)))
        .collect::<Result<_, String>>()
        .map_err(failed)?;
    drop(session);
    insert(context.is_go(), rendered, params);
    Ok(())
}

/// The form of values: a map of strings, or one parameter each.
pub(super) fn insert(is_go: bool, values: BTreeMap<String, String>, params: &mut Params) {
    if values.is_empty() {
        return;
    }
    if is_go {
        params.insert("values".to_owned(), Data::TextMap(values));
    } else {
        params.extend(values.into_iter().map(|(key, text)| (format!("values.{key}"), Data::Text(text))));
    }
}
