//! From verdicts and healths to the status of the app.

use plumb_core::object::ObjectKey;
use plumb_core::plan::lacks_metadata;
use plumb_core::status::{AppStatus, ComparedObjects, RollUp, roll_up as roll_up_objects};
use plumb_crd::Application;

use crate::app_run::{AppInputs, AppRun};
use crate::compare::run::Compared;

/// The app's status. `desired_is_outdated`: what Git asks now is not known, so the app is neither in sync nor out of it.
pub(crate) fn roll_up(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    desired_is_outdated: bool,
) -> AppStatus {
    let app = inputs.app;
    let unreadable: Vec<(ObjectKey, String)> =
        compared.unreadable.iter().map(|(key, error)| (key.clone(), error.to_string())).collect();
    let objects = ComparedObjects {
        app: &app.id,
        confirms_deletions: app.sync_policy.has("Prune=confirm") || app.sync_policy.has("Delete=confirm"),
        desired: compared.gathered.desired.get(),
        live: &compared.live.objects,
        verdicts: &compared.verdicts,
        healths: &compared.health.healths,
        hooks: &compared.hooks,
        unreadable: &unreadable,
        recorded: &compared.recorded,
        exemptions: &compared.exemptions,
        denied: &compared.denied,
    };
    roll_up_objects(RollUp {
        objects: objects.statuses(),
        desired_is_outdated,
        // This run may have written the start of an operation, which records the metadata.
        namespace_metadata_changed: run.snapshot.wire.as_ref().is_ok_and(namespace_metadata_changed)
            || namespace_lacks_metadata(inputs, compared),
    })
}

/// True if the destination namespace was an object of the app, has left Git, and does not have the metadata yet that the app
/// manages on it: Git's manifest took precedence until now.
pub(crate) fn namespace_lacks_metadata(inputs: AppInputs<'_>, compared: &Compared) -> bool {
    let policy = &inputs.app.sync_policy;
    let Some(managed) = policy.managed_namespace.as_ref().filter(|_| policy.has("CreateNamespace=true"))
    else {
        return false;
    };
    let in_git = &compared.gathered.desired.get().objects;
    let key = inputs.app.asked_namespace().filter(|key| !in_git.contains_key(key));
    let live = key.and_then(|key| compared.live.objects.get(&key));
    live.is_some_and(|live| lacks_metadata(live, managed))
}

/// True if `managedNamespaceMetadata` is not what was synced last. Before the first sync nothing is compared with it.
fn namespace_metadata_changed(application: &Application) -> bool {
    let Some(state) = &application.status.operation_state else { return false };
    let policy = application.spec.sync_policy.as_ref();
    let asked = policy.and_then(|policy| policy.managed_namespace_metadata.as_ref());
    let synced = state.sync_result.as_ref().and_then(|result| result.managed_namespace_metadata.as_ref());
    asked.is_some() && synced != asked
}
