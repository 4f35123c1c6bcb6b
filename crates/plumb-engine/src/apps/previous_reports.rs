//! Which apps have a `DriftReport` in the cluster, and what it said when plumb started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::app::AppId;
use plumb_core::drift::Finding;
use plumb_core::object::Manifest;
use plumb_crd::{DriftFinding, DriftReport, UnhealthyObject};
use plumb_kube::PackedJson;
use serde_json::Value;

/// Reports by app, those that were found packed. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<HashMap<AppId, Option<PackedJson>>>>);

impl Reports {
    /// Notes a report that was found in the cluster.
    pub(crate) fn found(&self, app: AppId, report: &Manifest) {
        self.lock().insert(app, Some(PackedJson::new(report.value())));
    }

    /// Takes what was found at the start, once.
    pub(crate) fn take(&self, app: &AppId) -> Option<DriftReport> {
        read(self.lock().get_mut(app)?.take().as_ref()?)
    }

    /// The objects that were not well when the report was written that was found at the start.
    pub(crate) fn ill(&self, app: &AppId) -> Vec<UnhealthyObject> {
        self.report(app).map(|report| report.health).unwrap_or_default()
    }

    /// What the report said that was found at the start.
    pub(crate) fn findings(&self, app: &AppId) -> Vec<Finding> {
        let report = self.report(app);
        report.iter().flat_map(|report| &report.findings).filter_map(DriftFinding::finding).collect()
    }

    fn report(&self, app: &AppId) -> Option<DriftReport> {
        read(self.lock().get(app)?.as_ref()?)
    }

    pub(crate) fn insert(&self, app: &AppId) {
        self.lock().insert(app.clone(), None);
    }

    pub(crate) fn contains(&self, app: &AppId) -> bool {
        self.lock().contains_key(app)
    }

    pub(crate) fn remove(&self, app: &AppId) {
        self.lock().remove(app);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AppId, Option<PackedJson>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None`: it is none that this plumb understands.
fn read(packed: &PackedJson) -> Option<DriftReport> {
    DriftReport::from_json(&packed.read::<Value>()?).ok()
}
