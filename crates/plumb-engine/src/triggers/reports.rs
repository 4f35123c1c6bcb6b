//! Requests runs of the apps whose report could not be written, when the kind of reports is served.

use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use plumb_crd::DriftReport;
use tracing::info;

use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};

/// Watches for the definition of the kind `DriftReport`.
pub(crate) async fn watch_report_kind(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
    let mut changes = engine.home.client.catalog_changes();
    while changes.changed().await.is_ok() {
        if changes.borrow_and_update().resource(&gvk).is_none() {
            continue;
        }
        let waiting = engine.without_report.take();
        if !waiting.is_empty() {
            info!(apps = waiting.len(), "the cluster serves the kind DriftReport: reports are written");
            engine.request_runs(waiting, Trigger::live(TriggerReason::Report));
        }
    }
    std::future::pending::<()>().await;
}
