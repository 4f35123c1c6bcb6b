//! F: a finished hook, or a Job that was collected as it asked.

use serde_json::Value;

use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Evidence, Fix, FixKind};
use crate::object::{FieldPath, Manifest};

/// A live object that was made as a hook: it has had its run.
pub(in crate::drift) fn left_over(live: &Manifest) -> Option<Explained> {
    let is_hook =
        ["argocd.argoproj.io/hook", "helm.sh/hook"].iter().any(|key| live.annotation(key).is_some());
    is_hook.then(|| {
        Explained::new(
            DriftClass::HookResidue,
            FieldPath::root(),
            false,
            "it was made as a hook; it stays until its delete policy or its next run removes it",
        )
    })
}

/// A Job that asked to be deleted after its run, is known to have finished, and is gone.
pub(in crate::drift) fn collected(evidence: &Evidence<'_>, desired: &Manifest) -> Option<Explained> {
    let finished = evidence.facts.finished.filter(|run| run.succeeded && run.same_desired)?;
    let ttl = desired.value().pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64)?;
    let why = match finished.at {
        Some(at) => format!(
            "it ran to its end at {at} and was collected {ttl} s later, as `ttlSecondsAfterFinished` asks"
        ),
        None => format!(
            "it was there when plumb was last at work, and is gone since; plumb was away for longer than the cluster keeps its events and than the {ttl} s after which it asks to be collected, so it is taken to have run"
        ),
    };
    let evidence = format!("{why}; it runs again only when Git changes it");
    let mut explained = Explained::new(DriftClass::HookResidue, FieldPath::root(), false, evidence);
    explained.since = finished.at;
    Some(explained)
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::None,
        "nothing needs to be done; `HookSucceeded` in the hook's delete policy removes it after its run",
    )
}
