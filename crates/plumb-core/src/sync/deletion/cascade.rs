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
        if live.owner != Owner::ThisApp {
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
    let asks = |live: &LiveFacts| {
        deletion_option(deletion, live) == PruneOption::Confirm || live.of_others.is_some()
    };
    let unconfirmed = left.iter().find(|(_, live)| asks(live));
    if let (Some((key, live)), false) = (unconfirmed, approved) {
        let why = live.of_others.as_ref().map(|what| format!("other apps would lose what is in it ({what})"));
        step.message = format!("waiting for deletion confirmation of {key}");
        step.unconfirmed = Some(((*key).clone(), why));
        return step;
    }
    for (key, live) in left.iter().filter(|(_, live)| live.options.wave == highest) {
        let uid = live.manifest.uid().map(str::to_owned);
        // The object of a hook comes from Git, and our own finalizer must not keep it.
        if is_held_as_hook(live) || is_deletion_hook(live) {
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

/// `PreDelete` hooks are through when the objects are deleted, and go with them. An object of a `PostDelete` hook is from
/// the deletion of an earlier app of this name, and would count as one that has run.
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
    if let Some(why) = live.never_deleted {
        return Some(why.to_owned());
    }
    if deletion.asked_namespace == Some(key) {
        return Some("a sync made it because the app's options ask for it".to_owned());
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
