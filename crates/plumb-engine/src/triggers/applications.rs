//! Requests runs when an Application is created, changed or removed.

use std::sync::Arc;

use plumb_core::app::AppId;
use plumb_core::object::GroupVersionKind;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ApiError, ObjectEvent, Selection};
use tracing::{info, warn};

use super::stream::stream;
use crate::apps::previous_report::PreviousReport;
use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};

/// Watches the Applications. All that exist at the start are registered before the first one runs: what one app renders
/// decides what happens to the objects of another.
pub(crate) async fn watch_applications(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND);
    let selection = Selection { namespace: engine.app_namespaces.to_watch(), ..Selection::default() };
    let mut stream = stream(&engine, &gvk, selection).await;
    let mut held: Option<Vec<(AppId, Trigger)>> = Some(Vec::new());
    while let Some(event) = stream.next().await {
        match event {
            ObjectEvent::Seen(manifest) => {
                if !manifest.namespace().is_some_and(|namespace| engine.app_namespaces.permit(namespace)) {
                    continue;
                }
                let Some((known, trigger)) = engine.registry.note(&manifest) else { continue };
                engine.restore_claims(&known);
                engine.set_signals.application(&manifest);
                engine.deleting_projects.reconsider();
                let id = known.id.clone();
                match (trigger, &mut held) {
                    (Some(trigger), Some(held)) => held.push((id, trigger)),
                    (Some(trigger), None) => engine.queue.push(id, trigger),
                    (None, _) => {}
                }
            }
            ObjectEvent::Gone { key, uid } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                engine.registry.forget(&id, &uid);
                engine.set_signals.application_gone(&id);
                engine.deleting_projects.reconsider();
                engine.queue.push(id, Trigger::live(TriggerReason::Gone));
            }
            ObjectEvent::Listed => {
                info!(apps = engine.registry.all().len(), "applications known");
                engine.registry.note_listed();
                engine.deleting_projects.apps_are_known();
                engine.set_signals.applications_listed();
                for (id, trigger) in held.take().into_iter().flatten() {
                    engine.queue.push(id, trigger);
                }
            }
            ObjectEvent::Trouble(_) => {}
        }
    }
}

/// Loads the reports that earlier processes wrote, so that times continue and no report is written twice.
pub(crate) async fn load_reports(engine: &Engine) {
    let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
    let selection = Selection { namespace: engine.app_namespaces.to_watch(), ..Selection::default() };
    let found = engine.home.client.for_each(&gvk, &selection, |manifest| {
        let id = manifest.namespace().zip(manifest.name());
        let id = id.map(|(namespace, name)| AppId { namespace: namespace.to_owned(), name: name.to_owned() });
        if let Some(id) = id.filter(|id| engine.app_namespaces.permit(&id.namespace)) {
            let found = PreviousReport::new(&manifest);
            engine.records.report(&id, |report| *report = found);
        }
    });
    // Without their kind there are none, and the first report that cannot be written is logged.
    if let Err(error) = found.await
        && !matches!(error, ApiError::UnknownKind { .. })
    {
        warn!(%error, "cannot read earlier DriftReports: times start over");
    }
}
