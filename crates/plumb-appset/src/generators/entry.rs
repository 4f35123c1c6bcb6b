//! One entry of `generators`: its kinds, its selector, its template.

use plumb_crd::application_set::{
    ApplicationSet, ApplicationSetGenerator, ApplicationSetTemplate, LabelSelector, MatrixGenerator,
    MergeGenerator,
};
use plumb_crd::wire::{RawMap, Wire as _};
use serde_json::Value as Json;

use super::{clusters, combine, decision, git, list, plugin, provider};
use crate::error::GenerationError;
use crate::facts::Facts;
use crate::params::{Params, flatten, weight};
use crate::render::{Engine, Renderer};
use crate::selector::{self, Values};
use crate::template;

/// Most parameter sets that a generator may produce.
pub(super) const MAX_SETS: usize = 20_000;

/// What all generators of a set share.
pub(crate) struct Context<'a> {
    pub(crate) set: &'a ApplicationSet,
    pub(crate) facts: &'a dyn Facts,
    pub(crate) renderer: &'a Renderer,
    pub(crate) new_git_file_globbing: bool,
    pub(crate) include_hidden_directories: bool,
}

impl Context<'_> {
    pub(crate) fn is_go(&self) -> bool {
        matches!(self.renderer.engine, Engine::Go(_))
    }
}

/// The parameter sets of one generator, with the template that they render.
pub(crate) struct Produced {
    pub(crate) params: Vec<Params>,
    pub(crate) template: ApplicationSetTemplate,
}

/// Runs all kinds of one entry. `before` has the parameters of the first generator of a matrix.
pub(crate) fn transform(
    context: &Context<'_>,
    entry: &ApplicationSetGenerator,
    before: Option<&Params>,
) -> Result<Vec<Produced>, GenerationError> {
    if let Some(selector) = &entry.selector {
        check_selector(selector)?;
    }
    let interpolated = match before {
        Some(params) if !params.is_empty() => Some(interpolate(context, entry, params)?),
        _ => None,
    };
    let rendered = interpolated.as_ref().unwrap_or(entry);
    let mut produced = Vec::new();
    for kind in kinds(rendered) {
        let template = template::merged(&context.set.spec.template, kind.template())?;
        let params = run(context, &kind)?;
        if params.len() > MAX_SETS {
            let count = params.len();
            return Err(GenerationError::generation(format!(
                "a generator produced {count} parameter sets, more than the limit of {MAX_SETS}; split the ApplicationSet"
            )));
        }
        for set in &params {
            context.renderer.budget.allocate(weight(set)).map_err(GenerationError::generation)?;
        }
        let params = match &entry.selector {
            Some(selector) => {
                params.into_iter().filter(|set| selector::matches(selector, &flatten(set))).collect()
            }
            None => params,
        };
        produced.push(Produced { params, template });
    }
    Ok(produced)
}

fn check_selector(selector: &LabelSelector) -> Result<(), GenerationError> {
    selector::check(selector, Values::Free)
        .map_err(|error| GenerationError::generation(format!("error parsing label selector: {error}")))
}

/// One generator of an entry, in the order in which Argo CD runs them.
enum Kind<'a> {
    List(&'a plumb_crd::application_set::ListGenerator),
    Clusters(&'a plumb_crd::application_set::ClusterGenerator),
    Git(&'a plumb_crd::application_set::GitGenerator),
    Scm(&'a plumb_crd::application_set::ScmProviderGenerator),
    Decision(&'a plumb_crd::application_set::ClusterDecisionResourceGenerator),
    PullRequest(&'a plumb_crd::application_set::PullRequestGenerator),
    Matrix(&'a MatrixGenerator),
    Merge(&'a MergeGenerator),
    Plugin(&'a plumb_crd::application_set::PluginGenerator),
}

impl Kind<'_> {
    fn template(&self) -> Option<&RawMap> {
        match self {
            Self::List(list) => list.template.as_ref(),
            Self::Clusters(clusters) => clusters.template.as_ref(),
            Self::Git(git) => git.template.as_ref(),
            Self::Scm(scm) => scm.template.as_ref(),
            Self::Decision(decision) => decision.template.as_ref(),
            Self::PullRequest(pull_request) => pull_request.template.as_ref(),
            Self::Matrix(matrix) => matrix.template.as_ref(),
            Self::Merge(merge) => merge.template.as_ref(),
            Self::Plugin(plugin) => plugin.template.as_ref(),
        }
    }
}

fn kinds(entry: &ApplicationSetGenerator) -> Vec<Kind<'_>> {
    let mut kinds = Vec::new();
    kinds.extend(entry.list.as_ref().map(Kind::List));
    kinds.extend(entry.clusters.as_ref().map(Kind::Clusters));
    kinds.extend(entry.git.as_ref().map(Kind::Git));
    kinds.extend(entry.scm_provider.as_deref().map(Kind::Scm));
    kinds.extend(entry.cluster_decision_resource.as_ref().map(Kind::Decision));
    kinds.extend(entry.pull_request.as_deref().map(Kind::PullRequest));
    kinds.extend(entry.matrix.as_ref().map(Kind::Matrix));
    kinds.extend(entry.merge.as_ref().map(Kind::Merge));
    kinds.extend(entry.plugin.as_ref().map(Kind::Plugin));
    kinds
}

fn run(context: &Context<'_>, kind: &Kind<'_>) -> Result<Vec<Params>, GenerationError> {
    match kind {
        Kind::List(list) => list::params(context, list),
        Kind::Clusters(generator) => clusters::params(context, generator),
        Kind::Git(generator) => git::params(context, generator),
        Kind::Scm(generator) => provider::repositories(context, generator),
        Kind::Decision(generator) => decision::params(context, generator),
        Kind::PullRequest(generator) => provider::pull_requests(context, generator),
        Kind::Matrix(matrix) => combine::matrix(context, matrix),
        Kind::Merge(merge) => combine::merge(context, merge),
        Kind::Plugin(generator) => plugin::params(context, generator),
    }
}

/// Renders every string of a generator with the parameters of the first generator of a matrix.
pub(super) fn interpolate(
    context: &Context<'_>,
    entry: &ApplicationSetGenerator,
    params: &Params,
) -> Result<ApplicationSetGenerator, GenerationError> {
    let failed = |error: String| {
        GenerationError::generation(format!("failed to replace parameters in generator: {error}"))
    };
    let mut json = entry.write();
    // The selector was compiled before, and the template is rendered later.
    let mut kept = Vec::new();
    if let Some(fields) = json.as_object_mut() {
        fields.remove("selector");
        for (kind, generator) in fields.iter_mut() {
            let Some(generator) = generator.as_object_mut() else { continue };
            if let Some(template) = generator.remove("template") {
                kept.push((kind.clone(), "template", template));
            }
            let is_known = |name: &str| {
                matches!(
                    name,
                    "clusters" | "git" | "scmProvider" | "pullRequest" | "plugin" | "clusterDecisionResource"
                )
            };
            if is_known(kind)
                && let Some(values) = generator.remove("values")
            {
                let values = preresolve(context, &values, params).map_err(failed)?;
                kept.push((kind.clone(), "values", values));
            }
        }
    }
    let session = context.renderer.session(params).map_err(failed)?;
    let mut rendered = session.json(&json, "").map_err(failed)?;
    for (kind, field, value) in kept {
        rendered[&kind][field] = value;
    }
    if let Some(selector) = &entry.selector {
        rendered["selector"] = selector.write();
    }
    ApplicationSetGenerator::read(&rendered).map_err(|error| failed(error.to_string()))
}

/// A value that only needs known parameters is rendered now; any other is left to the generator itself. Keys are not
/// rendered.
fn preresolve(context: &Context<'_>, values: &Json, params: &Params) -> Result<Json, String> {
    let session = match &context.renderer.engine {
        Engine::Flat => context.renderer.session(params)?,
        Engine::Go(options) => {
            let other = options.iter().filter(|option| !option.starts_with("missingkey=")).cloned();
            let strict: Vec<String> = other.chain(["missingkey=error".to_owned()]).collect();
            context.renderer.go_session(params, &strict)?
        }
    };
    let is_missing =
        |error: &str| error.contains("map has no entry for key") || error.contains("can't evaluate field");
    let mut resolved = serde_json::Map::new();
    for (key, value) in values.as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let rendered = match session.text(text) {
            Ok(rendered) => rendered,
            Err(error) if is_missing(&error) => text.to_owned(),
            Err(error) => {
                let key = plumb_gotemplate::format::quote(key);
                return Err(format!("failed to pre-resolve Values key {key}: {error}"));
            }
        };
        resolved.insert(key.clone(), Json::from(rendered));
    }
    Ok(Json::Object(resolved))
}
