//! A hook that has finished, or a Job that was deleted after its `ttlSecondsAfterFinished`.

use serde_json::Value;

use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Evidence, Fix, FixKind};
use crate::object::{FieldPath, Manifest};

/// A live object that was created by a hook.
pub(in crate::drift) fn left_over(live: &Manifest) -> Option<Explained> {
    let is_hook =
        ["argocd.argoproj.io/hook", "helm.sh/hook"].iter().any(|key| live.annotation(key).is_some());
    is_hook.then(|| {
        Explained::new(
            DriftClass::HookResidue,
            FieldPath::root(),
            false,
            "created by a hook; it stays until its delete policy or its next run removes it",
        )
    })
}

/// A Job with a TTL that is known to have finished, and is gone.
pub(in crate::drift) fn collected(evidence: &Evidence<'_>, desired: &Manifest) -> Option<Explained> {
    let finished = evidence.facts.finished.filter(|run| run.succeeded && run.same_desired)?;
    let ttl = desired.value().pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64)?;
    let why = match finished.at {
        Some(at) => format!(
            "the Job completed at {at} and was deleted {ttl} s later, as its `ttlSecondsAfterFinished` says"
        ),
        None => format!(
            "assumed to have completed: the Job existed when plumb last ran and is gone now, and plumb was down longer than both its TTL ({ttl} s) and the cluster's event retention"
        ),
    };
    let evidence = format!("{why}; it runs again only if Git changes it");
    let mut explained = Explained::new(DriftClass::HookResidue, FieldPath::root(), false, evidence);
    explained.since = finished.at;
    Some(explained)
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::None,
        "nothing to do; with `HookSucceeded` in its delete policy, a hook is deleted after its run",
    )
}
