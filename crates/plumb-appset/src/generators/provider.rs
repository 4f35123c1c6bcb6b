//! `scmProvider` and `pullRequest`: the parameters of what a provider answered.

use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use plumb_gotemplate::{normalize, slug};

use super::entry::Context;
use super::values;
use crate::error::GenerationError;
use crate::params::{Data, Params};

/// At most so many bytes of a text, at a character.
fn short(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

pub(super) fn repositories(
    context: &Context<'_>,
    generator: &ScmProviderGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let found = context.facts.repositories(generator).map_err(GenerationError::from)?;
    let mut sets = Vec::new();
    for repository in found {
        let mut params = Params::from([
            ("organization".to_owned(), Data::Text(repository.organization)),
            ("repository".to_owned(), Data::Text(repository.repository)),
            ("repository_id".to_owned(), Data::from_json(&repository.repository_id)),
            ("url".to_owned(), Data::Text(repository.url)),
            ("branchNormalized".to_owned(), Data::Text(normalize(&repository.branch))),
            ("branch".to_owned(), Data::Text(repository.branch)),
            ("short_sha".to_owned(), Data::from(short(&repository.sha, 8))),
            ("short_sha_7".to_owned(), Data::from(short(&repository.sha, 7))),
            ("sha".to_owned(), Data::Text(repository.sha)),
            ("labels".to_owned(), Data::Text(repository.labels.join(","))),
        ]);
        values::append(context, &generator.values, &mut params)
            .map_err(|error| error.during("failed to append templated values"))?;
        sets.push(params);
    }
    Ok(sets)
}

pub(super) fn pull_requests(
    context: &Context<'_>,
    generator: &PullRequestGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let found = context.facts.pull_requests(generator).map_err(GenerationError::from)?;
    let mut sets = Vec::new();
    for pull in found {
        let mut params = Params::from([
            ("number".to_owned(), Data::Text(pull.number.to_string())),
            ("title".to_owned(), Data::Text(pull.title)),
            ("branch_slug".to_owned(), Data::Text(slug(&pull.branch, 50, true))),
            ("branch".to_owned(), Data::Text(pull.branch)),
            ("target_branch_slug".to_owned(), Data::Text(slug(&pull.target_branch, 50, true))),
            ("target_branch".to_owned(), Data::Text(pull.target_branch)),
            ("head_short_sha".to_owned(), Data::from(short(&pull.head_sha, 8))),
            ("head_short_sha_7".to_owned(), Data::from(short(&pull.head_sha, 7))),
            ("head_sha".to_owned(), Data::Text(pull.head_sha)),
            ("author".to_owned(), Data::Text(pull.author)),
        ]);
        if context.is_go() {
            params.insert("labels".to_owned(), Data::Texts(pull.labels));
        }
        values::append(context, &generator.values, &mut params)
            .map_err(|error| error.during("failed to append templated values"))?;
        sets.push(params);
    }
    Ok(sets)
}
