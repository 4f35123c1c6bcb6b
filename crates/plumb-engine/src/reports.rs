//! Which apps have a `DriftReport` in the cluster, and what it said when plumb started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::app::AppId;
use plumb_core::drift::Finding;
use plumb_crd::{DriftFinding, DriftReport, IllObject};

/// Reports by app. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<HashMap<AppId, Option<DriftReport>>>>);

impl Reports {
    /// Notes a report that was found in the cluster.
    pub(crate) fn found(&self, app: AppId, report: DriftReport) {
        self.lock().insert(app, Some(report));
    }

    /// Takes what was found at the start, once.
    pub(crate) fn take(&self, app: &AppId) -> Option<DriftReport> {
        self.lock().get_mut(app)?.take()
    }

    /// The objects that were not well when the report was written that was found at the start.
    pub(crate) fn ill(&self, app: &AppId) -> Vec<IllObject> {
        self.lock().get(app).and_then(Option::as_ref).map(|report| report.health.clone()).unwrap_or_default()
    }

    /// What the report said that was found at the start.
    pub(crate) fn findings(&self, app: &AppId) -> Vec<Finding> {
        let reports = self.lock();
        let report = reports.get(app).and_then(Option::as_ref);
        report.into_iter().flat_map(|report| &report.findings).filter_map(DriftFinding::finding).collect()
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

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AppId, Option<DriftReport>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
