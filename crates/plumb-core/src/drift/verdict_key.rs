//! What a verdict depends on. A verdict is kept as long as its key stays the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Attempt, Evidence, Facts, HealLimit, LiveOwner, Previous};
use crate::app::CompareOptions;
use crate::object::Manifest;

/// Evidence with the same key leads to the same verdict, apart from times. The schema is part of the key: a custom resource
/// definition that gains a default changes live objects *without* a new resource version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerdictKey {
    desired: Option<u64>,
    live: Option<LiveVersion>,
    schema: u64,
    rules: u64,
    facts: u64,
}

/// The state of the live object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LiveVersion {
    /// As the API server numbers it.
    Numbered { uid: String, resource_version: String },
    /// An object without a resource version: its content.
    Content(u64),
}

impl VerdictKey {
    /// The key of this evidence. It names every field of `Evidence` and `Facts`, so that a new one cannot be forgotten.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let Evidence {
            // The object's identity is in both manifests, and verdicts are stored by it.
            key: _,
            desired,
            live,
            schemas,
            rules,
            options,
            facts,
            // The answers follow from the rest.
            answers: _,
            // A verdict that is kept keeps its times.
            now: _,
        } = evidence;
        let gvk = desired.map(|desired| desired.manifest.gvk());
        let own = desired.map(|desired| desired.options.compare).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        hash_facts(facts, &mut hasher);
        hash_options(options.or(own), &mut hasher);
        Self {
            desired: desired.map(|desired| content(&desired.manifest)),
            live: live.map(live_version),
            schema: gvk.and_then(|gvk| schemas.kind(&gvk)).map_or(0, |kind| kind.fingerprint),
            rules: rules.fingerprint(),
            facts: hasher.finish(),
        }
    }
}

fn live_version(live: &Manifest) -> LiveVersion {
    match (live.uid(), live.resource_version()) {
        (Some(uid), Some(resource_version)) => {
            LiveVersion::Numbered { uid: uid.to_owned(), resource_version: resource_version.to_owned() }
        }
        _ => LiveVersion::Content(content(live)),
    }
}

fn content(manifest: &Manifest) -> u64 {
    let mut hasher = DefaultHasher::new();
    manifest.value().hash(&mut hasher);
    hasher.finish()
}

fn hash_facts(facts: &Facts<'_>, hasher: &mut DefaultHasher) {
    let Facts {
        app,
        owner,
        previous,
        attempt,
        prune,
        extraneous,
        claims,
        autoscalers,
        users,
        mutators,
        heals,
        heal_limit: HealLimit { rounds, window },
        finished,
        render_may_vary,
        renamed,
        // Earlier findings only give a finding its time and its actor.
        earlier: _,
    } = facts;
    app.hash(hasher);
    match owner {
        LiveOwner::ThisApp => 0_u8.hash(hasher),
        LiveOwner::Nobody => 1_u8.hash(hasher),
        LiveOwner::App(app) => (2_u8, app).hash(hasher),
    }
    match previous {
        Previous::Unknown => 0_u8.hash(hasher),
        Previous::Same => 1_u8.hash(hasher),
        Previous::Changed(previous) => (2_u8, previous.map(content)).hash(hasher),
        Previous::Rerendered => 3_u8.hash(hasher),
    }
    match attempt {
        Attempt::None => 0_u8.hash(hasher),
        Attempt::Applied => 1_u8.hash(hasher),
        Attempt::Refused(failure) => (2_u8, &failure.message).hash(hasher),
        Attempt::Failed => 3_u8.hash(hasher),
    }
    (prune, render_may_vary, extraneous).hash(hasher);
    for claim in *claims {
        (claim.app, claim.manifest.map(content)).hash(hasher);
    }
    for autoscaler in *autoscalers {
        (&autoscaler.kind, &autoscaler.name, autoscaler.scales_to_zero).hash(hasher);
    }
    users.hash(hasher);
    for mutator in *mutators {
        (&mutator.kind, &mutator.name).hash(hasher);
    }
    for record in *heals {
        (&record.field, record.healed_at.len(), record.stopped).hash(hasher);
    }
    (rounds, window).hash(hasher);
    renamed.hash(hasher);
    finished.map(|run| (run.succeeded, run.same_desired)).hash(hasher);
}

fn hash_options(options: CompareOptions, hasher: &mut DefaultHasher) {
    let CompareOptions { strict, ignore_extraneous, server_side_diff, include_mutation_webhook } = options;
    (strict, ignore_extraneous, server_side_diff, include_mutation_webhook).hash(hasher);
}
