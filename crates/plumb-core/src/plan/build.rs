//! From facts to a plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::approval::approves;
use super::destination::{is_asked_for, namespace_step};
use super::order::{Placed, arrange, defined_kind, stage_of};
use super::{
    Action, ConfirmReason, Hook, HowToApply, LiveFacts, ObjectFacts, Owner, Payload, Plan, PlanInput,
    PruneGuard, Refusal, RefusedObject, Skip, Stage, Step, StepId, SyncPhase, WaitsFor, Why,
};
use crate::desired::{DesiredHook, DesiredObject, HookPhase, PruneOption};
use crate::object::{GroupKind, GroupVersionKind, ObjectKey};
use crate::tracking::Provenance;

/// Makes the plan, or says why there is none. The same input gives the same plan.
pub fn build(input: &PlanInput<'_>) -> Result<Plan, Refusal> {
    refuse_shared(input)?;
    let mut steps: Vec<Placed> = Vec::new();
    for object in input.desired.objects.values() {
        steps.extend(object_step(input, object));
    }
    if input.request.runs_hooks() {
        steps.extend(input.desired.hooks.iter().flat_map(|hook| hook_steps(input, hook)));
    }
    let namespace = namespace_step(input);
    steps.extend(prune_steps(input, namespace.as_ref()));
    steps.extend(namespace);
    refuse_invalid(input, &steps)?;
    let steps = mark_untriable(input, steps);

    let (groups, on_failure) = arrange(steps);
    let options = &input.request.options;
    Ok(Plan {
        mark: input.mark.clone(),
        dry_run: input.request.dry_run,
        automated: input.request.automated,
        selective: input.request.selected.is_some(),
        respect_ignore_differences: options.respect_ignore_differences,
        propagation: options.propagation,
        groups,
        on_failure,
    })
}

/// The step of one desired object; none where it is not selected, skipped by annotation, or unchanged and
/// only changes are wanted.
fn object_step(input: &PlanInput<'_>, object: &DesiredObject) -> Option<Placed> {
    if object.options.skip || !input.request.selects(&object.key) {
        return None;
    }
    let facts = input.facts.get(&object.key);
    let (action, why) = object_action(input, object, facts);
    if input.request.options.out_of_sync_only && matches!(action, Action::Unchanged) {
        return None;
    }
    let waits_for = match action {
        Action::Skip(_) => WaitsFor::Nothing,
        Action::Apply { .. } | Action::Unchanged | Action::CreateNamespace { .. } => WaitsFor::Health,
        Action::Prune { .. } => WaitsFor::Deletion,
        Action::RunHook(_) => WaitsFor::Completion,
    };
    Some(Placed {
        wave: object.options.wave,
        step: Step {
            id: StepId { phase: SyncPhase::Sync, key: object.key.clone() },
            version: object.manifest.gvk().version,
            stage: stage_of(&object.key.kind),
            action,
            can_be_tried: true,
            why,
            waits_for,
        },
        defines: defined_kind(&object.manifest),
        last: false,
    })
}

fn object_action(
    input: &PlanInput<'_>,
    object: &DesiredObject,
    facts: Option<&ObjectFacts>,
) -> (Action, Why) {
    if let Some(why) = facts.and_then(|facts| facts.paused.clone()) {
        return (Action::Skip(Skip::Paused { why }), Why::OutOfSync);
    }
    let Some((facts, live)) = facts.and_then(|facts| Some((facts, facts.live.as_ref()?))) else {
        let is_collected = facts.is_some_and(|facts| facts.in_sync);
        return match how_to_apply(input, object, None) {
            HowToApply::ServerSide if is_collected => (Action::Skip(Skip::Collected), Why::InSync),
            HowToApply::ServerSide
            | HowToApply::ServerSideOrRecreate
            | HowToApply::Create
            | HowToApply::Replace
            | HowToApply::Recreate => (apply(input, object, None, None), Why::Missing),
        };
    };
    match &live.owner {
        Owner::Other { app, renders: true } => {
            (Action::Skip(Skip::OwnedBy { app: app.clone() }), Why::Shared)
        }
        Owner::Other { app, renders: false } => {
            (apply(input, object, Some(live), Some(app.clone())), Why::Moved)
        }
        Owner::ThisApp | Owner::NoApp if live.manifest.is_terminating() => {
            (apply(input, object, Some(live), None), Why::Terminating)
        }
        Owner::NoApp if !facts.in_sync => (apply(input, object, Some(live), None), Why::Unadopted),
        Owner::ThisApp if !facts.in_sync => (apply(input, object, Some(live), None), Why::OutOfSync),
        Owner::ThisApp | Owner::NoApp => match how_to_apply(input, object, Some(live)) {
            HowToApply::Replace => (apply(input, object, Some(live), None), Why::WrittenEachTime),
            HowToApply::Recreate if !was_made_by_this_operation(input, live) => {
                (apply(input, object, Some(live), None), Why::WrittenEachTime)
            }
            HowToApply::Recreate
            | HowToApply::ServerSide
            | HowToApply::ServerSideOrRecreate
            | HowToApply::Create => (Action::Unchanged, Why::InSync),
        },
    }
}

/// A recreated object carries no mark of the operation (a mark would be a field that Git does not have), but
/// it is younger than the operation. After a restart that is how it is known to be done.
fn was_made_by_this_operation(input: &PlanInput<'_>, live: &LiveFacts) -> bool {
    live.manifest.created_at().is_some_and(|created| created >= input.mark.started_at)
}

fn apply(
    input: &PlanInput<'_>,
    object: &DesiredObject,
    live: Option<&LiveFacts>,
    takes_over: Option<String>,
) -> Action {
    Action::Apply {
        how: how_to_apply(input, object, live),
        strict: input.request.options.validate && !object.options.skip_validation,
        migrate: input.request.options.migrate,
        takes_over,
    }
}

fn how_to_apply(input: &PlanInput<'_>, object: &DesiredObject, live: Option<&LiveFacts>) -> HowToApply {
    // Only Git's annotations are asked: whoever may annotate the live object must not have it deleted and created again.
    let replace = input.request.options.replace || object.options.replace;
    let force = input.request.strategy.force() || object.options.force;
    let is_container = matches!(object.key.kind.as_str(), "Namespace" | "CustomResourceDefinition");
    match (live.is_some(), replace, force) {
        (false, true, _) => HowToApply::Create,
        (false, false, _) | (true, false, false) => HowToApply::ServerSide,
        // Deleting these would delete what is in them.
        (true, false, true) if is_container => HowToApply::ServerSide,
        (true, false, true) => HowToApply::ServerSideOrRecreate,
        (true, true, true) if !is_container => HowToApply::Recreate,
        (true, true, _) => HowToApply::Replace,
    }
}

fn hook_steps<'a>(input: &'a PlanInput<'_>, hook: &'a DesiredHook) -> impl Iterator<Item = Placed> + 'a {
    let mut phases: Vec<SyncPhase> = hook.phases.iter().filter_map(|phase| sync_phase(*phase)).collect();
    phases.sort_unstable();
    phases.dedup();
    phases.into_iter().filter_map(|phase| {
        let manifest = input.mark.stamp(&hook.manifest, hook.namespace.as_deref(), phase);
        let key = manifest.key()?;
        let how = if input.request.options.replace || hook.options.replace {
            HowToApply::Replace
        } else if input.request.strategy.force() || hook.options.force {
            HowToApply::ServerSideOrRecreate
        } else {
            HowToApply::ServerSide
        };
        Some(Placed {
            wave: hook.options.wave,
            step: Step {
                id: StepId { phase, key: key.clone() },
                version: manifest.gvk().version,
                stage: stage_of(&key.kind),
                can_be_tried: true,
                why: Why::Hook,
                waits_for: WaitsFor::Completion,
                action: Action::RunHook(Hook {
                    manifest: Payload(Arc::new(manifest)),
                    delete_policies: hook.options.delete_policies.clone(),
                    how,
                    strict: input.request.options.validate && !hook.options.skip_validation,
                }),
            },
            defines: defined_kind(&hook.manifest),
            last: false,
        })
    })
}

/// Hooks of the app's deletion take no part in a sync.
fn sync_phase(phase: HookPhase) -> Option<SyncPhase> {
    match phase {
        HookPhase::PreSync => Some(SyncPhase::PreSync),
        HookPhase::Sync => Some(SyncPhase::Sync),
        HookPhase::PostSync => Some(SyncPhase::PostSync),
        HookPhase::SyncFail => Some(SyncPhase::SyncFail),
        HookPhase::PreDelete | HookPhase::PostDelete => None,
    }
}

/// A step for every object of the app that Git does not have: deleted, or kept with a reason.
/// `namespace` is the step that makes the destination namespace, if there is one: what it writes is not deleted.
fn prune_steps(input: &PlanInput<'_>, namespace: Option<&Placed>) -> Vec<Placed> {
    let hooks: BTreeSet<ObjectKey> = input.desired.hooks.iter().filter_map(DesiredHook::key).collect();
    let extra: Vec<(&ObjectKey, &ObjectFacts, &LiveFacts)> = input
        .facts
        .iter()
        .filter(|(key, _)| !input.desired.objects.contains_key(*key) && !hooks.contains(*key))
        .filter(|(key, _)| input.request.selects(key))
        .filter(|(key, _)| namespace.is_none_or(|written| written.step.id.key != **key))
        .filter_map(|(key, facts)| Some((key, facts, facts.live.as_ref()?)))
        .filter(|(_, _, live)| live.owner == Owner::ThisApp && !live.options.is_hook)
        .collect();
    let skips: Vec<Option<Skip>> =
        extra.iter().map(|(key, facts, live)| why_not_prune(input, key, facts, live)).collect();
    let prunes = extra.iter().zip(&skips).filter(|(_, skip)| skip.is_none());
    let prunes: Vec<&LiveFacts> = prunes.map(|((_, _, live), _)| *live).collect();
    let n_objects = count_before(input, &prunes);
    let over_budget =
        if input.request.automated { input.budget.exceeded(prunes.len(), n_objects) } else { None };

    extra
        .into_iter()
        .zip(skips)
        .map(|((key, facts, live), skip)| {
            // A prune that waits for confirmation does not delay the rest.
            let held = skip.is_none()
                && (unproven(input, live).is_some()
                    || live.of_others.is_some()
                    || input.request.automated
                        && (over_budget.is_some()
                            || input.budget.asks_about(input.replaced_history).is_some()
                            || facts.listed_by.is_some()
                            || input.budget.protects(key, live.holds_data.as_deref()).is_some()));
            let last = input.request.options.prune_last || live.options.prune_last || held;
            let (action, waits_for) = match skip {
                // Already being deleted: the next wave starts when it is gone.
                Some(skip @ Skip::AlreadyTerminating) => (Action::Skip(skip), WaitsFor::Deletion),
                Some(skip) => (Action::Skip(skip), WaitsFor::Nothing),
                None => (prune(input, key, (facts, live), over_budget.as_ref()), WaitsFor::Deletion),
            };
            Placed {
                wave: live.options.wave,
                step: Step {
                    id: StepId { phase: SyncPhase::Sync, key: key.clone() },
                    version: live.manifest.gvk().version,
                    action,
                    stage: Stage::Prunes,
                    can_be_tried: true,
                    why: Why::LeftGit,
                    waits_for,
                },
                defines: None,
                last,
            }
        })
        .collect()
}

/// How many objects the app had before the change that removes these. A sync that waits for a confirmation has created the
/// objects of its commit already. If they counted, the share of the prunes would be smaller for the next plan, and what waits
/// would be deleted without a user. What was there at the last sync that succeeded, or before one of the prunes, is no part of
/// the change.
fn count_before(input: &PlanInput<'_>, prunes: &[&LiveFacts]) -> usize {
    let Some(youngest) = prunes.iter().filter_map(|live| live.manifest.created_at()).max() else {
        return count(input, |_| true);
    };
    count(input, |live| {
        let is_old = |created: Timestamp| {
            // Times have whole seconds: what came in the second in which the sync ended may be of the next one.
            created <= youngest || input.synced_at.is_some_and(|ended| created < ended)
        };
        live.manifest.created_at().is_none_or(is_old)
    })
}

/// How many objects of the app are like this.
fn count(input: &PlanInput<'_>, is_counted: impl Fn(&LiveFacts) -> bool) -> usize {
    let all = input.facts.values().filter_map(|facts| facts.live.as_ref());
    all.filter(|live| live.owner == Owner::ThisApp && !live.options.is_hook && is_counted(live)).count()
}

fn why_not_prune(
    input: &PlanInput<'_>,
    key: &ObjectKey,
    facts: &ObjectFacts,
    live: &LiveFacts,
) -> Option<Skip> {
    if let Some(app) = &facts.also_rendered_by {
        return Some(Skip::HandedOver { app: app.clone() });
    }
    if is_asked_for(input, key) {
        return Some(Skip::AskedFor);
    }
    if let Some(why) = live.never_deleted {
        return Some(Skip::NeverDeleted { why });
    }
    if live.options.prune.unwrap_or(input.request.options.prune) == PruneOption::Never {
        return Some(Skip::PruneForbidden);
    }
    if !input.request.prune {
        return Some(Skip::PruneNotRequested);
    }
    if let Some(why) = &facts.paused {
        return Some(Skip::Paused { why: why.clone() });
    }
    match input.deletions {
        Err(why) => Some(Skip::PruneUnproven(why.clone())),
        // The proof was made from another set than this one: it proves nothing here.
        Ok(proof) if !proof.has_left(key) => Some(Skip::PruneUnproven(super::NoProof::DesiredIncomplete {
            why: "the desired set changed while planning".to_owned(),
        })),
        Ok(_) if live.manifest.is_terminating() => Some(Skip::AlreadyTerminating),
        Ok(_) => None,
    }
}

fn prune(
    input: &PlanInput<'_>,
    key: &ObjectKey,
    (facts, live): (&ObjectFacts, &LiveFacts),
    over_budget: Option<&ConfirmReason>,
) -> Action {
    let mut reasons = Vec::new();
    match live.options.prune.unwrap_or(input.request.options.prune) {
        PruneOption::Confirm => reasons.push(ConfirmReason::Option),
        PruneOption::Allowed | PruneOption::Never => {}
    }
    reasons.extend(unproven(input, live).map(ConfirmReason::NotProven));
    reasons.extend(live.of_others.clone().map(|what| ConfirmReason::OfOthers { what }));
    if input.request.automated {
        reasons.extend(over_budget.cloned());
        reasons.extend(input.budget.asks_about(input.replaced_history));
        reasons.extend(input.budget.protects(key, live.holds_data.as_deref()));
        reasons.extend(facts.listed_by.clone().map(|app| ConfirmReason::ListedBy { app }));
    }
    let guard = if reasons.is_empty() {
        PruneGuard::Free
    } else {
        let approved = approves(input.approved_at, input.mark.started_at);
        PruneGuard::Confirm { reasons, approved }
    };
    Action::Prune { guard, uid: live.manifest.uid().map(str::to_owned) }
}

/// Why it is not proven that the app created an object, where that matters. Any client that may edit an object can write this
/// app's mark on it; that must not become a right to delete it. A user who asks for a prune has seen the object in the list.
fn unproven(input: &PlanInput<'_>, live: &LiveFacts) -> Option<Provenance> {
    match live.provenance {
        Provenance::Proven => None,
        why @ (Provenance::NotRecorded | Provenance::NeverWritten) => input.request.automated.then_some(why),
    }
}

/// Finds the steps whose kind or namespace an earlier step makes.
fn mark_untriable(input: &PlanInput<'_>, mut steps: Vec<Placed>) -> Vec<Placed> {
    let made: BTreeSet<String> = steps
        .iter()
        .filter(|placed| placed.step.id.key.kind == "Namespace" && placed.step.id.key.group.is_empty())
        .filter(|placed| matches!(placed.step.why, Why::Missing | Why::NamespaceMissing | Why::Hook))
        .map(|placed| placed.step.id.key.name.clone())
        .collect();
    for placed in &mut steps {
        let in_new_namespace =
            placed.step.id.key.namespace.as_ref().is_some_and(|namespace| made.contains(namespace));
        placed.step.can_be_tried = !in_new_namespace && (input.is_served)(&gvk_of(&placed.step));
    }
    steps
}

fn gvk_of(step: &Step) -> GroupVersionKind {
    let key = &step.id.key;
    GroupVersionKind { group: key.group.clone(), version: step.version.clone(), kind: key.kind.clone() }
}

/// `FailOnSharedResource=true`.
fn refuse_shared(input: &PlanInput<'_>) -> Result<(), Refusal> {
    if !input.request.options.fail_on_shared {
        return Ok(());
    }
    let objects: Vec<RefusedObject> = input
        .desired
        .objects
        .values()
        .filter_map(|object| match &input.facts.get(&object.key)?.live.as_ref()?.owner {
            Owner::Other { app, .. } => Some(RefusedObject {
                id: StepId { phase: SyncPhase::Sync, key: object.key.clone() },
                version: object.manifest.gvk().version,
                is_hook: false,
                message: format!("{} is part of application {app} too", object.key),
            }),
            Owner::ThisApp | Owner::NoApp => None,
        })
        .collect();
    if objects.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = objects.iter().map(|object| object.message.as_str()).collect();
    Err(Refusal { message: format!("Shared resource found: {}", names.join(", ")), objects })
}

/// Kinds that the server does not serve, objects that the project does not permit: nothing is applied at all.
fn refuse_invalid(input: &PlanInput<'_>, steps: &[Placed]) -> Result<(), Refusal> {
    let defined: BTreeSet<&GroupKind> = steps.iter().filter_map(|placed| placed.defines.as_ref()).collect();
    let objects: Vec<RefusedObject> = steps
        .iter()
        .filter(|placed| !matches!(placed.step.action, Action::Skip(_)))
        .filter_map(|placed| {
            let message = why_invalid(input, &placed.step, &defined)?;
            Some(RefusedObject {
                id: placed.step.id.clone(),
                version: placed.step.version.clone(),
                is_hook: placed.step.hook().is_some(),
                message,
            })
        })
        .collect();
    let Some(first) = objects.first() else { return Ok(()) };
    let message = format!(
        "one or more synchronization tasks are not valid, reason: {}",
        first.message.trim_end_matches('.')
    );
    Err(Refusal { message, objects })
}

fn why_invalid(input: &PlanInput<'_>, step: &Step, defined: &BTreeSet<&GroupKind>) -> Option<String> {
    let key = &step.id.key;
    if let Some(why) = (input.denied)(key) {
        return Some(why);
    }
    let gvk = gvk_of(step);
    let is_deletion = step.stage == Stage::Prunes;
    if is_deletion || (input.is_served)(&gvk) || defined.contains(&key.group_kind()) {
        return None;
    }
    let object_skips =
        input.desired.objects.get(key).is_some_and(|object| object.options.skip_dry_run_on_missing)
            || input
                .desired
                .hooks
                .iter()
                .any(|hook| hook.options.skip_dry_run_on_missing && hook.manifest.gvk() == gvk);
    if object_skips || input.request.options.skip_dry_run_on_missing {
        return None;
    }
    Some(not_served(&gvk, key, (input.served_versions)(&key.group_kind())))
}

/// In Argo CD's words.
fn not_served(gvk: &GroupVersionKind, key: &ObjectKey, served: Option<(GroupKind, Vec<String>)>) -> String {
    let object = format!("{}/{}", key.namespace_or_empty(), key.name);
    let GroupVersionKind { group, version, kind } = gvk;
    let Some((other, versions)) = served.filter(|(_, versions)| !versions.is_empty()) else {
        return format!(
            "The Kubernetes API could not find {group}/{kind} for requested resource {object}. Make sure the \
             \"{kind}\" CRD is installed on the destination cluster."
        );
    };
    let (word, verb) = if versions.len() == 1 { ("Version", "is") } else { ("Versions", "are") };
    let versions: Vec<String> = versions.iter().map(|version| format!("\"{version}\"")).collect();
    format!(
        "The Kubernetes API could not find version \"{version}\" of {group}/{kind} for requested resource \
         {object}. {word} {} of {}/{} {verb} installed on the destination cluster.",
        versions.join(", "),
        other.group,
        other.kind
    )
}
