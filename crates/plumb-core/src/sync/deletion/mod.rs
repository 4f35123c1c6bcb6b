//! Deleting an app: hooks before, its objects from the last wave to the first, hooks after, then it may go.
//!
//! [`next`] keeps no state: it looks at the finalizers that are left and at what lives, and says what to do
//! now. Call it again when something changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{LiveSight, Sight};
use crate::desired::{DeletePolicy, DesiredHook, HookPhase, Propagation, PruneOption, Wave};
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::{AppOptions, HOOK_FINALIZER, LiveFacts, ObjectFacts, OperationMark, Owner, Payload, named};

/// Deletes the app's objects, children first.
pub const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";
/// The same, by another name.
pub const CASCADE_FOREGROUND: &str = "resources-finalizer.argocd.argoproj.io/foreground";
/// Deletes the app's objects, children later.
pub const CASCADE_BACKGROUND: &str = "resources-finalizer.argocd.argoproj.io/background";
/// Runs `PreDelete` hooks.
pub const PRE_DELETE: &str = "pre-delete-finalizer.argocd.argoproj.io";
/// Cleans `PreDelete` hooks up.
pub const PRE_DELETE_CLEANUP: &str = "pre-delete-finalizer.argocd.argoproj.io/cleanup";
/// Runs `PostDelete` hooks.
pub const POST_DELETE: &str = "post-delete-finalizer.argocd.argoproj.io";
/// Cleans `PostDelete` hooks up.
pub const POST_DELETE_CLEANUP: &str = "post-delete-finalizer.argocd.argoproj.io/cleanup";

/// Every finalizer that is ours to remove.
pub const FINALIZERS: [&str; 7] = [
    CASCADE,
    CASCADE_FOREGROUND,
    CASCADE_BACKGROUND,
    PRE_DELETE,
    PRE_DELETE_CLEANUP,
    POST_DELETE,
    POST_DELETE_CLEANUP,
];

/// The finalizers that an app should have, given the hooks that Git has now: those for `PreDelete` and
/// `PostDelete` hooks come and go with such hooks. `None` if nothing has to change.
pub fn finalizers_for(present: &[String], hooks: &[DesiredHook]) -> Option<Vec<String>> {
    let mut wanted = present.to_vec();
    for (phase, finalizers) in [
        (HookPhase::PreDelete, [PRE_DELETE, PRE_DELETE_CLEANUP]),
        (HookPhase::PostDelete, [POST_DELETE, POST_DELETE_CLEANUP]),
    ] {
        let has_hooks = hooks.iter().any(|hook| hook.phases.contains(&phase));
        for finalizer in finalizers {
            let is_there = wanted.iter().any(|present| present == finalizer);
            if has_hooks && !is_there {
                wanted.push(finalizer.to_owned());
            } else if !has_hooks && is_there {
                wanted.retain(|present| present != finalizer);
            }
        }
    }
    (wanted != present).then_some(wanted)
}

/// An app that is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct Deletion<'a> {
    /// Finalizers left on the Application.
    pub finalizers: &'a [String],
    /// When the deletion was asked for, and the revision whose hooks run.
    pub mark: &'a OperationMark,
    /// Its hooks, or why they are not known.
    pub hooks: Result<&'a [DesiredHook], &'a str>,
    /// Every object that belongs to it and that the project permits.
    pub objects: &'a BTreeMap<ObjectKey, ObjectFacts>,
    /// Did every watch behind `objects` finish its first list?
    pub live_complete: bool,
    /// The hooks' objects as the cluster holds them; a key that is not here is not known yet.
    pub sights: &'a BTreeMap<ObjectKey, Sight>,
    /// Hooks that failed in this deletion, and how: [`DeletionStep::failed_hooks`] of earlier steps.
    pub failed_before: &'a BTreeMap<ObjectKey, String>,
    /// The spec's sync options.
    pub options: &'a AppOptions,
    /// The Application itself: an app of apps may contain itself.
    pub itself: &'a ObjectKey,
    /// When a person last approved deletions.
    pub approved_at: Option<Timestamp>,
    /// Is the destination cluster known? If not, nothing in it can be deleted, and the app may go.
    pub is_destination_known: bool,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletionStep {
    /// To be started now, all at the same time.
    pub commands: Vec<DeletionCommand>,
    /// To be removed from the Application now, in this order, after the commands.
    pub drop_finalizers: Vec<&'static str>,
    /// What is waited for, in words.
    pub message: String,
    /// Why it does not go on.
    pub error: Option<String>,
    /// What failed before and is tried again now. The `DeletionError` condition says it until it went well: one that
    /// comes and goes with every try is missed by whoever looks in between.
    pub earlier_error: Option<String>,
    /// Hooks that have failed now, and how.
    pub failed_hooks: Vec<(ObjectKey, String)>,
    /// An object that a person has to confirm the deletion of first.
    pub unconfirmed: Option<ObjectKey>,
    /// Objects that stay, each with its reason.
    pub kept: Vec<(ObjectKey, String)>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub enum DeletionCommand {
    /// Create a hook.
    CreateHook {
        /// Which.
        key: ObjectKey,
        /// As it is sent.
        manifest: Payload,
    },
    /// Delete a hook's object, releasing its finalizer. No tombstone.
    DeleteHook {
        /// Which.
        key: ObjectKey,
        /// Only this incarnation.
        uid: Option<String>,
    },
    /// Store the tombstone, then delete the object.
    DeleteObject {
        /// Which.
        key: ObjectKey,
        /// Only this incarnation.
        uid: Option<String>,
        /// What happens to its children.
        propagation: Propagation,
    },
}

/// What to do now with an app that is being deleted.
pub fn next(deletion: &Deletion<'_>) -> DeletionStep {
    let has = |finalizer: &str| deletion.finalizers.iter().any(|set| set == finalizer);
    if !deletion.is_destination_known {
        return DeletionStep {
            drop_finalizers: FINALIZERS.into_iter().filter(|finalizer| has(finalizer)).collect(),
            message: "the destination cluster is not known: nothing in it is deleted".to_owned(),
            ..DeletionStep::default()
        };
    }
    if has(PRE_DELETE) {
        return run_hooks(deletion, HookPhase::PreDelete, PRE_DELETE);
    }
    let cascades = [
        (CASCADE_BACKGROUND, Propagation::Background),
        (CASCADE, Propagation::Foreground),
        (CASCADE_FOREGROUND, Propagation::Foreground),
    ];
    if let Some((_, propagation)) = cascades.into_iter().find(|(finalizer, _)| has(finalizer)) {
        let finalizers =
            cascades.into_iter().map(|(finalizer, _)| finalizer).filter(|finalizer| has(finalizer));
        return cascade(deletion, propagation, finalizers.collect());
    }
    if has(POST_DELETE) {
        return run_hooks(deletion, HookPhase::PostDelete, POST_DELETE);
    }
    if has(PRE_DELETE_CLEANUP) {
        return clean_up(deletion, HookPhase::PreDelete, PRE_DELETE_CLEANUP);
    }
    if has(POST_DELETE_CLEANUP) {
        return clean_up(deletion, HookPhase::PostDelete, POST_DELETE_CLEANUP);
    }
    DeletionStep::default()
}

/// The objects that the deletion's hooks run as, for whoever gathers the sights.
pub fn hook_keys(hooks: &[DesiredHook], mark: &OperationMark) -> Vec<ObjectKey> {
    let phases = [HookPhase::PreDelete, HookPhase::PostDelete];
    let named = phases.iter().flat_map(|phase| {
        let word = format!("{phase:?}").to_lowercase();
        hooks.iter().filter(|hook| hook.phases.contains(phase)).map(move |hook| {
            ObjectKey::new(
                hook.manifest.group().to_owned(),
                hook.manifest.kind().to_owned(),
                hook.namespace.clone(),
                mark.name_of(&hook.manifest, &word),
            )
        })
    });
    named.collect()
}

/// Hooks of this phase with their final names, lowest wave first.
fn hooks_of(
    deletion: &Deletion<'_>,
    phase: HookPhase,
) -> Result<Vec<(Wave, ObjectKey, DesiredHook)>, String> {
    let hooks = deletion.hooks.map_err(|why| format!("the hooks are not known: {why}"))?;
    let word = format!("{phase:?}").to_lowercase();
    let mut named: Vec<(Wave, ObjectKey, DesiredHook)> = hooks
        .iter()
        .filter(|hook| hook.phases.contains(&phase))
        .filter_map(|hook| {
            let name = deletion.mark.name_of(&hook.manifest, &word);
            let manifest = named(&hook.manifest, &name).with_namespace(hook.namespace.as_deref());
            let key = manifest.key()?;
            Some((hook.options.wave, key, DesiredHook { manifest, ..hook.clone() }))
        })
        .collect();
    named.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    Ok(named)
}

/// Creates what is missing, wave by wave, and waits until all are healthy.
fn run_hooks(deletion: &Deletion<'_>, phase: HookPhase, finalizer: &'static str) -> DeletionStep {
    let hooks = match hooks_of(deletion, phase) {
        Ok(hooks) => hooks,
        Err(error) => return DeletionStep { error: Some(error), ..DeletionStep::default() },
    };
    let mut step = DeletionStep::default();
    let mut waits: Vec<&ObjectKey> = Vec::new();
    let mut current: Option<Wave> = None;
    for (wave, key, hook) in &hooks {
        if current.is_some_and(|current| current != *wave) && !waits.is_empty() {
            break;
        }
        current = Some(*wave);
        match deletion.sights.get(key) {
            None => waits.push(key),
            // It ran in this deletion: nobody remembers runs of before.
            Some(Sight::Collected) => {}
            Some(Sight::Gone) => {
                waits.push(key);
                let manifest = Payload(std::sync::Arc::new(hook.manifest.clone()));
                step.commands.push(DeletionCommand::CreateHook { key: key.clone(), manifest });
            }
            Some(Sight::Live(live)) => match hook_state(live) {
                HookState::Ended => {}
                HookState::Running => waits.push(key),
                HookState::Failed(why) => {
                    waits.push(key);
                    step.error = Some(failure(phase, key, &why));
                    step.failed_hooks.push((key.clone(), why));
                    if !live.terminating {
                        step.commands
                            .push(DeletionCommand::DeleteHook { key: key.clone(), uid: live.uid.clone() });
                    }
                }
            },
        }
    }
    match waits.as_slice() {
        [] => step.drop_finalizers.push(finalizer),
        [first, ..] => step.message = format!("waiting for completion of {phase:?} hook {first}"),
    }
    step.earlier_error = waits
        .iter()
        .find_map(|key| deletion.failed_before.get(*key).map(|why| failure(phase, key, why)))
        .filter(|_| step.error.is_none());
    step
}

fn failure(phase: HookPhase, key: &ObjectKey, why: &str) -> String {
    format!("{phase:?} hook {key} failed and is run again: {why}")
}

enum HookState {
    Running,
    Ended,
    Failed(String),
}

fn hook_state(live: &LiveSight) -> HookState {
    let Some(health) = &live.health else { return HookState::Ended };
    match health.status {
        HealthStatus::Healthy => HookState::Ended,
        HealthStatus::Degraded => HookState::Failed(health.message.clone()),
        HealthStatus::Progressing
        | HealthStatus::Suspended
        | HealthStatus::Missing
        | HealthStatus::Unknown => HookState::Running,
    }
}

/// Deletes the highest wave that is left, once the wave above it is gone.
fn cascade(deletion: &Deletion<'_>, propagation: Propagation, finalizers: Vec<&'static str>) -> DeletionStep {
    if !deletion.live_complete {
        let message = "waiting for the cluster to be listed completely".to_owned();
        return DeletionStep { message, ..DeletionStep::default() };
    }
    let mut step = DeletionStep::default();
    let mut left: Vec<(&ObjectKey, &LiveFacts)> = Vec::new();
    for (key, facts) in deletion.objects {
        let Some(live) = &facts.live else { continue };
        if live.owner != Owner::ThisApp || !live.self_referenced || is_deletion_hook(live) {
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
        // A hook of a sync that never saw its end is held by our own finalizer.
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
    let approved = deletion.approved_at.is_some_and(|approved| approved >= deletion.mark.started_at);
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
    step.message = format!("deleting wave {}, {} objects are left", highest.0, left.len());
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
    HookPhase::of(&live.manifest).iter().any(|phase| match phase {
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
    if let Some(app) = &facts.also_rendered_by {
        return Some(format!("app {app} renders it and takes it over"));
    }
    if live.options.helm_keep {
        return Some("helm.sh/resource-policy: keep".to_owned());
    }
    (deletion_option(deletion, live) == PruneOption::Never).then(|| "Delete=false".to_owned())
}

/// Deletes the hooks' objects that ask for it, and waits until they are gone.
fn clean_up(deletion: &Deletion<'_>, phase: HookPhase, finalizer: &'static str) -> DeletionStep {
    let mut step = DeletionStep::default();
    // Hooks that are not known any more cannot be cleaned up; that must not keep the app for ever.
    let hooks = hooks_of(deletion, phase).unwrap_or_default();
    for (_, key, hook) in &hooks {
        let wants = match deletion.sights.get(key) {
            None => {
                step.message = format!("waiting for deletion of hook {key}");
                continue;
            }
            Some(Sight::Gone | Sight::Collected) => continue,
            Some(Sight::Live(live)) => match hook_state(live) {
                HookState::Failed(_) => (live, DeletePolicy::HookFailed),
                HookState::Ended | HookState::Running => (live, DeletePolicy::HookSucceeded),
            },
        };
        let (live, policy) = wants;
        if !hook.options.delete_policies.contains(&policy) {
            step.kept.push((key.clone(), format!("its delete policy does not ask for it ({policy:?})")));
            continue;
        }
        step.message = format!("waiting for deletion of hook {key}");
        if !live.terminating {
            step.commands.push(DeletionCommand::DeleteHook { key: key.clone(), uid: live.uid.clone() });
        }
    }
    if step.message.is_empty() {
        step.drop_finalizers.push(finalizer);
    }
    step
}

#[cfg(test)]
mod tests;
