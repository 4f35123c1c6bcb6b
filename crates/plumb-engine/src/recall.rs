//! After a start nothing is remembered of what was applied. The cluster tells it: the last operation's results,
//! and the last successful sync, whose commit can be rendered again.
//!
//! What was applied is what tells an edit from a commit that was not synced yet. An object that Git asks for now
//! exactly as at the last full sync was what Git asks then: whatever differs since was changed in the cluster.

use plumb_core::app::App;
use plumb_core::drift::VerdictStatus;
use plumb_core::object::ObjectKey;
use plumb_crd::Application;
use plumb_crd::application as wire;
use tracing::debug;

use crate::compare::Compared;
use crate::memory::{AttemptRecord, AttemptResult, Fingerprint, Memory};
use crate::project::Ground;
use crate::reconcile::Run;
use crate::sources::Gathered;

impl Run<'_> {
    /// Recalls what the last operation applied, if it synced what Git asks now. This needs no rendering.
    pub(crate) fn recall_last_operation(&self, memory: &mut Memory, gathered: &Gathered) {
        if !memory.attempts.is_empty() {
            return;
        }
        let Ok(application) = &self.known.wire else { return };
        let state = application.status.operation_state.as_ref();
        let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else { return };
        if revisions(&result.revisions, &result.revision) != gathered.revisions {
            return;
        }
        for object in gathered.desired.get().objects.values() {
            let synced = result.resources.iter().any(|entry| {
                entry.status == "Synced"
                    && (&entry.group, &entry.kind, &entry.name)
                        == (&object.key.group, &object.key.kind, &object.key.name)
                    && entry.namespace == object.key.namespace_or_empty()
            });
            if synced {
                memory.attempts.insert(object.key.clone(), applied(Fingerprint::of(&object.manifest)));
            }
        }
    }

    /// Recalls what the last successful full sync applied, where it matters: an object differs and it is not
    /// known what was applied. Says whether anything was recalled. Tried once after a start.
    pub(crate) async fn recall_last_sync(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        memory: &mut Memory,
    ) -> bool {
        let is_open = |key: &ObjectKey| !memory.attempts.contains_key(key);
        let matters = compared.verdicts.values().any(|verdict| {
            verdict.status != VerdictStatus::Synced
                && compared.live.objects.contains_key(&verdict.key)
                && is_open(&verdict.key)
        });
        if memory.recalled || !matters {
            return false;
        }
        memory.recalled = true;
        let Some(last) = application.status.history.last() else { return false };
        if !same_sources(last, &application.spec) {
            return false;
        }
        let revisions = revisions(&last.revisions, &last.revision);
        let then = match self.engine.sources.gather_at(application, app, ground, &revisions).await {
            Ok(then) => then,
            Err(error) => {
                debug!(app = %app.id, error, "the last synced commit cannot be rendered again");
                return false;
            }
        };
        let mut recalled = false;
        for object in then.desired.get().objects.values() {
            let attempts = &mut memory.attempts;
            attempts.entry(object.key.clone()).or_insert_with(|| {
                recalled = true;
                applied(Fingerprint::of(&object.manifest))
            });
        }
        recalled
    }
}

fn applied(desired: Fingerprint) -> AttemptRecord {
    // Another process rendered it, perhaps for another version of the cluster.
    AttemptRecord { desired, origin: None, result: AttemptResult::Applied }
}

/// One or many, as a list.
fn revisions(many: &[String], one: &str) -> Vec<String> {
    if many.is_empty() { vec![one.to_owned()] } else { many.to_vec() }
}

/// Did that sync render what the spec names now, whatever the commit?
fn same_sources(last: &wire::RevisionHistory, spec: &wire::ApplicationSpec) -> bool {
    let of = |many: &[wire::ApplicationSource], one: Option<&wire::ApplicationSource>| {
        let sources: Vec<wire::ApplicationSource> =
            if many.is_empty() { one.into_iter().cloned().collect() } else { many.to_vec() };
        sources
            .into_iter()
            .map(|source| wire::ApplicationSource { target_revision: String::new(), ..source }.normalized())
            .collect::<Vec<_>>()
    };
    let now = wire::ComparedTo::of(spec);
    of(&last.sources, last.source.as_deref()) == of(&now.sources, now.source.as_deref())
}
