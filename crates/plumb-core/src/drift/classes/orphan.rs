//! The app tracks the object, Git no longer has it, and it has not been pruned.

use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Evidence, Fix, FixKind};
use crate::object::{FieldPath, Manifest};

/// Why it is still there, and what still uses it.
pub(in crate::drift) fn explain(evidence: &Evidence<'_>, live: &Manifest) -> Vec<Explained> {
    let guard = guard(live);
    let why = match (&guard, evidence.facts.prune) {
        (Some(guard), _) => format!("it is protected by {guard}"),
        (None, false) => "the app's sync policy does not prune".to_owned(),
        (None, true) => "the next sync with prune deletes it".to_owned(),
    };
    let orphan = |text: String| Explained::new(DriftClass::Orphan, FieldPath::root(), true, text);
    let mut found = vec![orphan(format!("removed from Git but still tracked by this app; {why}"))];
    if !evidence.facts.users.is_empty() {
        found.push(orphan(format!("still used by {}", users(evidence))));
    }
    found
}

/// `Ingress shop/web, Pod shop/web-1, and 3 more`.
fn users(evidence: &Evidence<'_>) -> String {
    const SHOWN: usize = 5;
    let users = evidence.facts.users;
    let mut names: Vec<String> = users.iter().take(SHOWN).map(ToString::to_string).collect();
    if users.len() > SHOWN {
        names.push(format!("and {} more", users.len() - SHOWN));
    }
    names.join(", ")
}

/// What keeps a sync from deleting it.
fn guard(live: &Manifest) -> Option<String> {
    let option = live.annotation("argocd.argoproj.io/sync-options").and_then(|options| {
        options.split(',').map(str::trim).find(|option| matches!(*option, "Prune=false" | "Prune=confirm"))
    });
    option.map(|option| format!("the sync option `{option}`"))
}

pub(in crate::drift) fn fix(evidence: &Evidence<'_>) -> Fix {
    let app = evidence.facts.app;
    let first = if evidence.facts.users.is_empty() {
        String::new()
    } else {
        format!("first check what still uses it ({}); then ", users(evidence))
    };
    Fix::new(
        FixKind::Prune,
        format!(
            "{first}preview with `plumb app sync {app} --prune --dry-run` and delete it with `plumb app sync {app} --prune` (`plumb undo` can restore it); or add it back to Git"
        ),
    )
}
