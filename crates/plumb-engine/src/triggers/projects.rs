//! Requests runs when a project changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use plumb_crd::AppProject;
use plumb_kube::{ObjectEvent, Selection};
use tokio::sync::oneshot;

use super::first_list::FirstList;
use super::stream::stream;
use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// Watches the projects. Without them every app would be refused, so the engine waits for their first list.
pub(crate) async fn watch_projects(engine: Arc<Engine>, listed: oneshot::Sender<()>) {
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let mut listed = FirstList::new(listed);
    let mut stream = stream(&engine, &gvk, selection).await;
    while let Some(event) = stream.next().await {
        let changed = match event {
            ObjectEvent::Seen(manifest) => {
                engine.deleting_projects.note(&manifest);
                engine.config.note_project(&manifest)
            }
            ObjectEvent::Gone { key, .. } => {
                engine.deleting_projects.forget(&key.name);
                engine.config.forget_project(&key.name)
            }
            ObjectEvent::Listed => {
                listed.signal();
                BTreeSet::new()
            }
            ObjectEvent::Trouble(_) => BTreeSet::new(),
        };
        if !changed.is_empty() {
            engine.set_signals.projects();
            let apps = engine
                .registry
                .all()
                .into_iter()
                .filter(|known| known.app.as_ref().is_ok_and(|app| changed.contains(&app.project)));
            engine.request_runs(
                apps.map(|known| known.id.clone()).collect(),
                // The project decides which commits count: one that it refused may be permitted now.
                Trigger::new(RefreshDepth::Git, TriggerReason::Project),
            );
        }
    }
}
