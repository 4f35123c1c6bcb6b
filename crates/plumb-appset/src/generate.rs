//! All Applications of a set.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plumb_crd::application_set::ApplicationSet;
use plumb_gotemplate::Limits;
use serde_json::Value as Json;

use crate::error::{GenerationError, Reason};
use crate::facts::Facts;
use crate::follows::Follows;
use crate::generators::{Context, Place, asks_servers, followed, transform};
use crate::params::Params;
use crate::render::{Budget, Engine, Renderer, Total};
use crate::template;

/// Settings of the installation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `enable-new-git-file-globbing`.
    pub new_git_file_globbing: bool,
    /// Directories whose name starts with a dot count, too.
    pub include_hidden_directories: bool,
    /// What rendering one parameter set may cost.
    pub limits: Limits,
    /// What the whole generation may cost.
    pub total: Total,
    /// The time of this generation.
    pub now: Timestamp,
    /// Random functions of templates draw from it; the same seed gives the same Applications.
    pub seed: [u8; 32],
}

/// The seed for the set with this UID. Random functions give the same values each time, so that a set does not change
/// its Applications with each run.
pub fn seed_of_uid(uid: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(uid.as_bytes()).into()
}

/// What a set generates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// The Applications in generated order, before validation: `metadata`, `spec`, perhaps `operation`.
    pub applications: Vec<Json>,
    /// The parameter sets, in the same order.
    pub params: Vec<Params>,
    /// Entries of `generators` that ask a server and returned nothing, by their position. So did those of unknown kinds.
    pub silent: BTreeSet<usize>,
}

/// Generates the Applications of a set. All generators and templates are tried; the first error is reported.
pub fn generate(
    set: &ApplicationSet,
    facts: &dyn Facts,
    settings: &Settings,
) -> Result<Generated, GenerationError> {
    generate_within(set, facts, settings, &mut settings.total.steps.clone())
}

/// The same with the steps that are left. A caller that generates again and again, with more facts each time, thereby
/// takes all steps from one budget.
pub fn generate_within(
    set: &ApplicationSet,
    facts: &dyn Facts,
    settings: &Settings,
    steps_left: &mut u64,
) -> Result<Generated, GenerationError> {
    let renderer = renderer(set, settings, *steps_left);
    let result = generate_with(set, facts, settings, &renderer);
    *steps_left = renderer.budget.steps_left();
    result
}

fn generate_with(
    set: &ApplicationSet,
    facts: &dyn Facts,
    settings: &Settings,
    renderer: &Renderer,
) -> Result<Generated, GenerationError> {
    let context = context(set, facts, renderer, settings);
    let produced: Vec<_> = set.spec.generators.iter().map(|entry| transform(&context, entry, None)).collect();
    // A fact that is missing comes before any failure: it may be the reason for it. Nothing is rendered in vain.
    let is_missing = |error: &&GenerationError| error.reason == Reason::Unanswered;
    if let Some(missing) = produced.iter().filter_map(|result| result.as_ref().err()).find(is_missing) {
        return Err(missing.clone());
    }
    let mut generated = Generated::default();
    let mut first_error: Option<GenerationError> = None;
    for (position, (result, entry)) in produced.into_iter().zip(&set.spec.generators).enumerate() {
        let produced = match result {
            Ok(produced) => produced,
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        if asks_servers(entry) && produced.iter().all(|one| one.params.is_empty()) {
            generated.silent.insert(position);
        }
        for one in produced {
            for params in one.params {
                match template::render(set, &one.template, renderer, &params) {
                    Ok(application) => {
                        generated.applications.push(application);
                        generated.params.push(params);
                    }
                    Err(error) => {
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => Ok(generated),
    }
}

/// What a set follows outside of the cluster, with the same facts as [`generate`].
pub fn follows(set: &ApplicationSet, facts: &dyn Facts, settings: &Settings) -> Follows {
    let renderer = renderer(set, settings, settings.total.steps);
    let context = context(set, facts, &renderer, settings);
    let mut found = Follows::default();
    for entry in &set.spec.generators {
        followed(&context, entry, Place::Top, &mut found);
    }
    found
}

fn renderer(set: &ApplicationSet, settings: &Settings, steps: u64) -> Renderer {
    let engine =
        if set.spec.go_template { Engine::Go(set.spec.go_template_options.clone()) } else { Engine::Flat };
    Renderer {
        engine,
        limits: settings.limits,
        budget: Budget::with_steps(settings.total, steps),
        now: settings.now,
        seed: seed_of(set, settings.seed),
    }
}

fn context<'a>(
    set: &'a ApplicationSet,
    facts: &'a dyn Facts,
    renderer: &'a Renderer,
    settings: &Settings,
) -> Context<'a> {
    Context {
        set,
        facts,
        renderer,
        new_git_file_globbing: settings.new_git_file_globbing,
        include_hidden_directories: settings.include_hidden_directories,
    }
}

/// Each set has random numbers of its own.
fn seed_of(set: &ApplicationSet, seed: [u8; 32]) -> [u8; 32] {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    hasher.update(seed);
    hasher.update(set.metadata.namespace.as_bytes());
    hasher.update([0]);
    hasher.update(set.metadata.name.as_bytes());
    hasher.finalize().into()
}
