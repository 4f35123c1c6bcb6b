//! What a verdict depends on, so that it can be kept as long as nothing of it changes.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Attempt, Evidence, LiveOwner, Previous};
use crate::app::CompareOptions;
use crate::object::Manifest;

/// Two evidences with the same key lead to the same verdict, apart from times. The schema is part of it: a
/// custom resource definition that gains a default changes live objects *without* a new resource version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerdictKey {
    desired: Option<u64>,
    live: Option<LiveVersion>,
    schema: u64,
    rules: u64,
    facts: u64,
}

/// Which state of the live object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LiveVersion {
    /// As the server numbers it.
    Numbered { uid: String, resource_version: String },
    /// An object from elsewhere: its content.
    Content(u64),
}

impl VerdictKey {
    /// The key of this evidence. Answers are left out: they follow from the rest.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let gvk = evidence.desired.map(|desired| desired.manifest.gvk());
        let schema = gvk.and_then(|gvk| evidence.schemas.kind(&gvk)).map_or(0, |kind| kind.fingerprint);
        Self {
            desired: evidence.desired.map(|desired| content(&desired.manifest)),
            live: evidence.live.map(live_version),
            schema,
            rules: evidence.rules.fingerprint(),
            facts: facts(evidence),
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

fn facts(evidence: &Evidence<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let facts = &evidence.facts;
    facts.app.hash(&mut hasher);
    match &facts.owner {
        LiveOwner::ThisApp => 0_u8.hash(&mut hasher),
        LiveOwner::Nobody => 1_u8.hash(&mut hasher),
        LiveOwner::App(app) => (2_u8, app).hash(&mut hasher),
    }
    match facts.previous {
        Previous::Unknown => 0_u8.hash(&mut hasher),
        Previous::Same => 1_u8.hash(&mut hasher),
        Previous::Changed(previous) => (2_u8, previous.map(content)).hash(&mut hasher),
        Previous::Rerendered => 3_u8.hash(&mut hasher),
    }
    match facts.attempt {
        Attempt::None => 0_u8.hash(&mut hasher),
        Attempt::Applied => 1_u8.hash(&mut hasher),
        Attempt::Refused(failure) => (2_u8, &failure.message).hash(&mut hasher),
        Attempt::Failed => 3_u8.hash(&mut hasher),
    }
    (facts.prune, facts.render_may_vary).hash(&mut hasher);
    for claim in facts.claims {
        (claim.app, claim.manifest.map(content)).hash(&mut hasher);
    }
    for autoscaler in facts.autoscalers {
        (&autoscaler.kind, &autoscaler.name).hash(&mut hasher);
    }
    facts.users.hash(&mut hasher);
    for mutator in facts.mutators {
        (&mutator.kind, &mutator.name).hash(&mut hasher);
    }
    for record in facts.heals {
        (&record.field, record.healed_at.len(), record.stopped).hash(&mut hasher);
    }
    facts.renamed.hash(&mut hasher);
    facts.finished.map(|run| (run.succeeded, run.same_desired)).hash(&mut hasher);
    let own = evidence.desired.map(|desired| desired.options.compare).unwrap_or_default();
    let CompareOptions { strict, ignore_extraneous, server_side_diff, include_mutation_webhook } =
        evidence.options.or(own);
    (strict, ignore_extraneous, server_side_diff, include_mutation_webhook).hash(&mut hasher);
    hasher.finish()
}
