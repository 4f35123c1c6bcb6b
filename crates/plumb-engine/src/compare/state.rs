//! What comparisons of one app keep between two runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_core::automation::HealLedger;
use plumb_core::drift::{Finding, HealRecord};
use plumb_core::fields::Exemptions;
use plumb_core::object::{FieldPath, Fingerprint, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::writes::WriteHistory;

use super::verdict_cache::VerdictCache;

/// What comparisons of one app keep.
#[derive(Default)]
pub(crate) struct JudgeState {
    /// What plumb applied, object by object.
    pub(crate) writes: WriteHistory,
    /// What self-heal did, object by object.
    pub(crate) ledger: HealLedger,
    /// Verdicts that still hold.
    pub(super) verdicts: VerdictCache,
    /// The findings of the last comparison. Objects without findings are left out.
    pub(crate) findings: BTreeMap<ObjectKey, Arc<[Finding]>>,
    /// What Git said about the app's objects, also about those that it no longer has.
    pub(crate) exemptions: Exemptions,
    /// Fingerprints of the schemas that objects were last judged with.
    pub(super) schemas: HashMap<GroupVersionKind, u64>,
    /// Objects that were read again because their schema changed. A CRD that gains a default changes what the API
    /// server returns for an object without a new resource version, so no watch event says so.
    pub(super) reread: HashMap<ObjectKey, Arc<Manifest>>,
    /// What was restored from an earlier process.
    pub(crate) restored: RestoredOnce,
}

/// What was restored from an earlier process. Each is tried once.
#[derive(Default)]
pub(crate) struct RestoredOnce {
    /// The findings of its last report.
    pub(crate) findings: bool,
    /// What its last successful sync applied.
    pub(crate) last_sync: bool,
    /// Jobs that finished while plumb was down.
    pub(crate) unseen_jobs: bool,
}

impl JudgeState {
    /// Returns spare memory to the allocator.
    pub(crate) fn shrink(&mut self) {
        self.writes.shrink();
        self.verdicts.shrink();
        self.schemas.shrink_to_fit();
        self.reread.shrink_to_fit();
    }

    /// The findings of the last comparison of one object.
    pub(super) fn findings_of(&self, key: &ObjectKey) -> Arc<[Finding]> {
        self.findings.get(key).cloned().unwrap_or_default()
    }

    /// What self-heal did to an object, field by field, as the judge reads it. `asked` identifies what Git asks now:
    /// rounds over another request do not count.
    pub(super) fn heals(&self, key: &ObjectKey, asked: Fingerprint) -> Vec<HealRecord> {
        let Some((context, healed_at)) = self.ledger.heals(key) else { return Vec::new() };
        if context.desired != asked.to_string() {
            return Vec::new();
        }
        let healed_at: Vec<_> = healed_at.collect();
        let stopped = self.ledger.is_stopped(key);
        let fields = context.fields.iter();
        fields
            .map(|field| HealRecord {
                field: FieldPath::from_pointer(field),
                healed_at: healed_at.clone(),
                stopped,
            })
            .collect()
    }
}
