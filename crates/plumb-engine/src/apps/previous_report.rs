//! The `DriftReport` of an app as plumb found it when it started.

use std::sync::Arc;

use plumb_core::drift::Finding;
use plumb_core::fields::Exemptions;
use plumb_core::object::Manifest;
use plumb_crd::{DriftFinding, DriftReport, UnhealthyObject};
use plumb_kube::PackedJson;
use serde_json::Value;

/// The report of one app in the cluster.
#[derive(Debug, Default)]
pub(crate) struct PreviousReport {
    exists: bool,
    found: Option<FoundReport>,
}

/// What an earlier process wrote. It is decompressed when it is read, which is not done under a lock.
#[derive(Clone, Debug)]
pub(crate) struct FoundReport(Arc<PackedJson>);

impl PreviousReport {
    /// A report that an earlier process wrote.
    pub(crate) fn new(report: &Manifest) -> Self {
        Self { exists: true, found: Some(FoundReport(Arc::new(PackedJson::new(report.value())))) }
    }

    /// True if the cluster has a report of the app.
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// Notes that this process wrote a report.
    pub(crate) fn note_written(&mut self) {
        self.exists = true;
    }

    /// The report of an earlier process, until this one has compared its first report with it.
    pub(crate) fn found(&mut self) -> Option<FoundReport> {
        self.found.clone()
    }

    /// Takes the report of an earlier process, once.
    pub(crate) fn take(&mut self) -> Option<FoundReport> {
        self.found.take()
    }
}

impl FoundReport {
    /// The report; `None` if this version of plumb cannot read it.
    pub(crate) fn read(&self) -> Option<DriftReport> {
        DriftReport::from_json(&self.0.read::<Value>()?).ok()
    }

    /// The objects that Git exempted, as far as they were reported.
    pub(crate) fn exemptions(&self) -> Exemptions {
        self.read().map(|report| report.exemptions()).unwrap_or_default()
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
}
