//! The plan of an operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::desired::{ObjectOptions, PruneOption};
use plumb_core::drift::{Verdict, VerdictStatus};
use plumb_core::object::{GroupKind, GroupVersionKind, ObjectKey};
use plumb_core::plan::{
    DeletionProof, LastSync, LiveFacts, NamespaceFacts, ObjectFacts, Owner, Plan, PlanInput, Refusal,
    ReplacedHistory, build, data_lost_with,
};

use plumb_core::project::PlainSecrets;
use plumb_core::secrets::{plain_keys_of, shown_keys};
use plumb_core::tracking::Provenance;

use super::advance::approved_for;
use super::namespace_contents::{of_others, why_never};
use crate::app_run::{AppInputs, AppRun};
use crate::apps::context::AppContext;
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;

/// Plans an operation. Pure, apart from reading the store.
pub(super) fn plan(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    (active, last): (&ActiveOperation, &LastSync),
    replaced_history: Option<&ReplacedHistory>,
) -> Result<Plan, Refusal> {
    let AppInputs { application, app, context } = inputs;
    let facts: BTreeMap<ObjectKey, ObjectFacts> = compared
        .verdicts
        .iter()
        .map(|(key, verdict)| (key.clone(), facts(run, inputs, compared, (key, verdict))))
        .collect();
    let namespace = app.destination.namespace.clone();
    let namespace_key = namespace.as_deref().map(ObjectKey::of_namespace);
    let node = namespace_key.and_then(|key| context.cluster.store.node(&key));
    let proof = DeletionProof::new(&compared.gathered.desired, &compared.live);
    let catalog = context.cluster.client.catalog();
    build(&PlanInput {
        desired: compared.gathered.desired.get(),
        facts: &facts,
        deletions: proof.as_ref(),
        request: &active.request(),
        namespace: &NamespaceFacts {
            exists: node.is_some_and(|node| !node.terminating),
            is_asked_for: app.asked_namespace().is_some(),
            name: namespace,
            managed: app.sync_policy.managed_namespace.clone(),
        },
        budget: context.settings.prune_budget,
        replaced_history,
        synced_at: last.ended_at,
        mark: &active.mark(&app.uid),
        approved_at: approved_for(application, active, run.now),
        is_served: &|gvk: &GroupVersionKind| catalog.resource(gvk).is_some(),
        served_versions: &|kind: &GroupKind| catalog.served_versions(kind),
        denied: &|key: &ObjectKey| {
            run.engine.denies_now(app, context, key).or_else(|| refuses_plain(context, compared, key))
        },
    })
}

/// Why the project does not permit the Secret, if it does not.
fn refuses_plain(context: &AppContext, compared: &Compared, key: &ObjectKey) -> Option<String> {
    if context.project.plain_secrets() != PlainSecrets::Refuse {
        return None;
    }
    let keys = plain_keys_of(compared.gathered.desired.get(), key);
    let (name, project) = (&key.name, context.project.name());
    let gathered = &compared.gathered;
    let origin = gathered.desired.get().objects.get(key).and_then(|object| object.origin.as_ref());
    let place = if gathered.is_from_plugin(origin) { "as the plugin prints it" } else { "in the sources" };
    (!keys.is_empty()).then(|| {
        format!(
            "{} {name} has plain values {place} ({}), which project '{project}' refuses; `plumb seal` encrypts them \
             for Git",
            key.kind,
            shown_keys(&keys)
        )
    })
}

fn facts(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    (key, verdict): (&ObjectKey, &Verdict),
) -> ObjectFacts {
    let context = inputs.context;
    let recorded = &compared.recorded;
    let app_confirms = inputs.app.sync_policy.has("Prune=confirm");
    let was_in_git = |options: &ObjectOptions| {
        let asks = app_confirms || options.prune == Some(PruneOption::Confirm);
        if asks { recorded.may_contain(key) } else { recorded.contains(key) }
    };
    let live = compared.live.objects.get(key).map(|live| LiveFacts {
        manifest: Arc::clone(live),
        options: ObjectOptions::of_live(live, recorded.may_contain(key)),
        owner: compared.owners.get(key).cloned().unwrap_or(Owner::NoApp),
        provenance: Provenance::of(live, was_in_git(&ObjectOptions::parse(live))),
        holds_data: verdict
            .requires_pruning
            .then(|| context.settings.protects(key).or_else(|| holds_data(inputs, live)))
            .flatten(),
        of_others: verdict.requires_pruning.then(|| of_others(run, inputs, key)).flatten(),
        never_deleted: why_never(run, inputs, key),
    });
    let left_to = compared.left_to_others.get(key);
    let claimed_by =
        |is_kept: bool| left_to.filter(|left| left.is_kept == is_kept).map(|left| left.app.clone());
    ObjectFacts {
        paused: live
            .as_ref()
            .and_then(|live| inputs.pause_of(key, &live.manifest, run.now))
            .map(|pause| pause.reason),
        also_rendered_by: claimed_by(true),
        listed_by: claimed_by(false),
        in_sync: !verdict.advice.needed && verdict.status == VerdictStatus::Synced,
        live,
    }
}

fn holds_data(inputs: AppInputs<'_>, live: &plumb_core::object::Manifest) -> Option<String> {
    let store = &inputs.context.cluster.store;
    let claims = |namespace: &str| {
        let inside = store.in_namespace(namespace);
        inside.iter().filter(|node| node.key.kind == "PersistentVolumeClaim").count()
    };
    data_lost_with(live, claims, |kind: &GroupKind| store.count(kind))
}
