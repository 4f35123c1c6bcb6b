//! Deleting the objects of an app, wave by wave.

use serde_json::Value;

use super::{Deletion, DeletionCommand, DeletionStep};
use crate::desired::{HookPhase, Propagation, PruneOption};
use crate::object::ObjectKey;
use crate::plan::{HOOK_FINALIZER, LiveFacts, ObjectFacts, Owner, approves};
use crate::tracking::Provenance;

/// Deletes the highest wave that is left, once the wave above it is gone.
pub(super) fn cascade(
    deletion: &Deletion<'_>,
    propagation: Propagation,
    finalizers: Vec<&'static str>,
) -> DeletionStep {
    if !deletion.live_complete {
        let message = "waiting for the cluster to be listed completely".to_owned();
        return DeletionStep { message, ..DeletionStep::default() };
    }
    let mut step = DeletionStep::default();
    let mut left: Vec<(&ObjectKey, &LiveFacts)> = Vec::new();
    for (key, facts) in deletion.objects {
        let Some(live) = &facts.live else { continue };
        if live.owner != Owner::ThisApp || is_deletion_hook(live) {
            continue;
        }
        match why_kept(deletion, key, facts, live) {
            Some(why) => step.kept.push((key.clone(), why)),
            None => left.push((key, live)),
        }
    }
    let is_leaving = |live: &LiveFacts| live.manifest.is_terminating();
    if let Some((first, _)) = left.iter().find(|(_, live)| is_leaving(live)) {
        step.message = format!("waiting for deletion of {first}");
        // A hook whose end no sync recorded still has our own finalizer.
        for (key, live) in left.iter().filter(|(_, live)| is_leaving(live) && is_held_as_hook(live)) {
            let uid = live.manifest.uid().map(str::to_owned);
            step.commands.push(DeletionCommand::DeleteHook { key: (*key).clone(), uid });
        }
        return step;
    }
    let Some(highest) = left.iter().map(|(_, live)| live.options.wave).max() else {
        step.drop_finalizers = finalizers;
        return step;
    };
    let approved = approves(deletion.approved_at, deletion.mark.started_at);
    let unconfirmed = left.iter().find(|(_, live)| deletion_option(deletion, live) == PruneOption::Confirm);
    if let (Some((key, _)), false) = (unconfirmed, approved) {
        step.message = format!("waiting for deletion confirmation of {key}");
        step.unconfirmed = Some((*key).clone());
        return step;
    }
    for (key, live) in left.iter().filter(|(_, live)| live.options.wave == highest) {
        let uid = live.manifest.uid().map(str::to_owned);
        // The object of a hook comes from Git, and our own finalizer must not keep it.
        if is_held_as_hook(live) {
            step.commands.push(DeletionCommand::DeleteHook { key: (*key).clone(), uid });
            continue;
        }
        step.commands.push(DeletionCommand::DeleteObject { key: (*key).clone(), uid, propagation });
    }
    step.message = format!("deleting wave {}, {} objects left", highest.0, left.len());
    step
}

fn deletion_option(deletion: &Deletion<'_>, live: &LiveFacts) -> PruneOption {
    live.options.delete.unwrap_or(deletion.options.delete)
}

fn is_held_as_hook(live: &LiveFacts) -> bool {
    let finalizers = live.manifest.value().pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().any(|finalizer| finalizer == HOOK_FINALIZER)
}

/// Hooks of the deletion have their own steps; all other hooks go with the app's objects.
fn is_deletion_hook(live: &LiveFacts) -> bool {
    live.options.is_hook
        && HookPhase::of(&live.manifest).iter().any(|phase| match phase {
            HookPhase::PreDelete | HookPhase::PostDelete => true,
            HookPhase::PreSync | HookPhase::Sync | HookPhase::PostSync | HookPhase::SyncFail => false,
        })
}

fn why_kept(
    deletion: &Deletion<'_>,
    key: &ObjectKey,
    facts: &ObjectFacts,
    live: &LiveFacts,
) -> Option<String> {
    if key == deletion.itself {
        return Some("it is the app itself".to_owned());
    }
    if key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition" {
        return Some("CRDs are never deleted with an app".to_owned());
    }
    // The record of the app decides: an object that Git had may never have been written, if it was there and the same.
    if live.provenance == Provenance::NotRecorded {
        return Some(live.provenance.to_string());
    }
    if let Some(app) = &facts.also_rendered_by {
        return Some(format!("app {app} renders it and takes ownership"));
    }
    if live.options.helm_keep {
        return Some("helm.sh/resource-policy: keep".to_owned());
    }
    (deletion_option(deletion, live) == PruneOption::Never).then(|| "Delete=false".to_owned())
}
