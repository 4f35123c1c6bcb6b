//! D: tracked, gone from Git, not pruned.

use super::super::case::Explained;
use super::super::{DriftClass, Evidence, Fix, FixKind};
use crate::object::{FieldPath, Manifest};

/// Why it is still there.
pub(in crate::drift) fn explain(evidence: &Evidence<'_>, live: &Manifest) -> Explained {
    let guard = guard(live);
    let why = match (&guard, evidence.facts.prune) {
        (Some(guard), _) => format!("it is guarded by {guard}"),
        (None, false) => "the app's sync policy does not prune".to_owned(),
        (None, true) => "the next sync with prune deletes it".to_owned(),
    };
    let evidence = format!("this app tracks it and Git no longer has it; {why}");
    Explained::new(DriftClass::Orphan, FieldPath::root(), true, evidence)
}

/// What keeps a sync from deleting it.
fn guard(live: &Manifest) -> Option<String> {
    let option = live.annotation("argocd.argoproj.io/sync-options").and_then(|options| {
        options.split(',').map(str::trim).find(|option| matches!(*option, "Prune=false" | "Prune=confirm"))
    });
    let helm = live.annotation("helm.sh/resource-policy").filter(|policy| *policy == "keep");
    option
        .map(|option| format!("the sync option `{option}`"))
        .or_else(|| helm.map(|_| "`helm.sh/resource-policy: keep`".to_owned()))
}

pub(in crate::drift) fn fix() -> Fix {
    super::fix(
        FixKind::Prune,
        "see who still uses it, then sync with prune; or put it back into Git; the deletion can be undone",
    )
}
