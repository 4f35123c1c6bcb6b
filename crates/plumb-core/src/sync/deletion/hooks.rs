//! `PreDelete` and `PostDelete` hooks.

use super::{Deletion, DeletionCommand, DeletionStep};
use crate::desired::{DeletePolicy, DesiredHook, HookPhase, Wave};
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::{OperationMark, Payload, named};
use crate::sync::{Observation, ObservedObject};

/// The keys of the deletion's hook objects, for the caller that gathers the observations.
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
    let hooks = deletion.hooks.map_err(|why| format!("cannot determine the hooks: {why}"))?;
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
pub(super) fn run_hooks(deletion: &Deletion<'_>, phase: HookPhase, finalizer: &'static str) -> DeletionStep {
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
        match deletion.observations.get(key) {
            None => waits.push(key),
            // It ran in this deletion: earlier runs are not recorded.
            Some(Observation::Collected) => {}
            Some(Observation::Gone) => {
                waits.push(key);
                let manifest = Payload(std::sync::Arc::new(hook.manifest.clone()));
                step.commands.push(DeletionCommand::CreateHook { key: key.clone(), manifest });
            }
            Some(Observation::Live(live)) => match hook_state(live) {
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
    format!("{phase:?} hook {key} failed and will be retried: {why}")
}

enum HookState {
    Running,
    Ended,
    Failed(String),
}

fn hook_state(live: &ObservedObject) -> HookState {
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

/// Deletes the hooks' objects that ask for it, and waits until they are gone.
pub(super) fn clean_up(deletion: &Deletion<'_>, phase: HookPhase, finalizer: &'static str) -> DeletionStep {
    let mut step = DeletionStep::default();
    // Unknown hooks cannot be cleaned up; that must not block the deletion of the app for ever.
    let hooks = hooks_of(deletion, phase).unwrap_or_default();
    for (_, key, hook) in &hooks {
        let wants = match deletion.observations.get(key) {
            None => {
                step.message = format!("waiting for deletion of hook {key}");
                continue;
            }
            Some(Observation::Gone | Observation::Collected) => continue,
            Some(Observation::Live(live)) => match hook_state(live) {
                HookState::Failed(_) => (live, DeletePolicy::HookFailed),
                HookState::Ended | HookState::Running => (live, DeletePolicy::HookSucceeded),
            },
        };
        let (live, policy) = wants;
        if !hook.options.delete_policies.contains(&policy) {
            step.kept.push((key.clone(), format!("its delete policy does not apply ({policy:?})")));
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
