//! What is in a namespace that a prune or the deletion of an app would take along.

use plumb_core::app::ClusterRef;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{never_deleted, others_lose_with};
use plumb_crd::Application;

use crate::app_run::{AppInputs, AppRun};

/// What other apps would lose with this object, in words. Only a namespace has anything in it.
pub(crate) fn of_others(run: &AppRun<'_>, inputs: AppInputs<'_>, key: &ObjectKey) -> Option<String> {
    if *key != ObjectKey::of_namespace(&key.name) {
        return None;
    }
    let AppInputs { app, context, .. } = inputs;
    let engine = &run.engine;
    let permits_claim = engine.permits_claim(&context.cluster);
    // An app that is being deleted, or does not exist, needs nothing. A tracking mark that the project of the app does not
    // permit counts for nothing.
    let counts = |instance: &str, object: &ObjectKey| {
        let id = engine.registry.by_instance(instance, &engine.options.namespace)?;
        let known = engine.registry.summary(&id)?;
        let is_deleted = known.head.as_ref().is_ok_and(Application::is_terminating);
        (!is_deleted && permits_claim(&id, object)).then(|| instance.to_owned())
    };
    let itself = Application::key(&app.id);
    let inside = context.cluster.store.in_namespace(&key.name).into_iter();
    let others: Vec<(ObjectKey, Option<String>)> = inside
        .filter(|node| node.owner.as_deref() != Some(&*context.instance))
        .filter(|node| !node.terminating && node.key != itself)
        .map(|node| {
            let app = node.owner.as_deref().and_then(|instance| counts(instance, &node.key));
            (node.key, app)
        })
        .collect();
    others_lose_with(&others)
}

/// Why no app ever deletes this object, if so.
pub(crate) fn why_never(run: &AppRun<'_>, inputs: AppInputs<'_>, key: &ObjectKey) -> Option<&'static str> {
    let is_home = *inputs.context.cluster.server == *ClusterRef::IN_CLUSTER_SERVER;
    never_deleted(key, is_home.then_some(run.engine.options.namespace.as_str()))
}
