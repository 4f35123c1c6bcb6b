//! The `DriftReport` of an app as plumb found it when it started.

use plumb_core::drift::Finding;
use plumb_core::object::Manifest;
use plumb_crd::{DriftFinding, DriftReport, UnhealthyObject};
use plumb_kube::PackedJson;
use serde_json::Value;

/// The report of one app in the cluster.
#[derive(Debug, Default)]
pub(crate) struct PreviousReport {
    exists: bool,
    /// What an earlier process wrote, until this one writes its first report.
    found: Option<PackedJson>,
}

impl PreviousReport {
    /// Takes in a report that an earlier process wrote.
    pub(crate) fn set(&mut self, report: &Manifest) {
        *self = Self { exists: true, found: Some(PackedJson::new(report.value())) };
    }

    /// True if the cluster has a report of the app.
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// Notes that this process wrote a report.
    pub(crate) fn note_written(&mut self) {
        self.exists = true;
    }

    /// Takes the report of an earlier process, once.
    pub(crate) fn take(&mut self) -> Option<DriftReport> {
        let found = self.found.take()?;
        DriftReport::from_json(&found.read::<Value>()?).ok()
    }

    /// The unhealthy objects that were reported.
    pub(crate) fn unhealthy(&self) -> Vec<UnhealthyObject> {
        self.read().map(|report| report.health).unwrap_or_default()
    }

    /// The findings that were reported.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let report = self.read();
        report.iter().flat_map(|report| &report.findings).filter_map(DriftFinding::finding).collect()
    }

    fn read(&self) -> Option<DriftReport> {
        DriftReport::from_json(&self.found.as_ref()?.read::<Value>()?).ok()
    }
}
