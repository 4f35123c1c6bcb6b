//! Did this app bring the object into the cluster?
//!
//! Any client that may edit an object can write a tracking mark on it. So the mark alone is no reason to delete the
//! object: plumb must also have written it, and an earlier status of the app must list it as an object from Git. The
//! status belongs to the Application, which other users may write than those who may write the object.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::tracked_by::is_written_by_us;
use crate::object::{Manifest, ObjectKey};

/// An entry of an app's `status.resources`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEntry {
    /// The object.
    pub key: ObjectKey,
    /// Is it a hook?
    pub is_hook: bool,
    /// Was it left over in the cluster?
    pub requires_pruning: bool,
    /// Must a user confirm its deletion?
    pub requires_confirmation: bool,
}

/// The objects that an app is known to have had in Git, by its own status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedObjects {
    from_git: BTreeSet<ObjectKey>,
    /// Left over, and a user must confirm the deletion: because it is not known to be from Git, or because an option says so.
    to_confirm: BTreeSet<ObjectKey>,
}

impl RecordedObjects {
    /// Reads the entries of the status. An object that was first seen when Git did not have it is listed as one that a user
    /// must confirm, and so stays unrecorded however often the status is read again.
    pub fn from_status(entries: impl IntoIterator<Item = StatusEntry>) -> Self {
        let mut recorded = Self::default();
        for entry in entries.into_iter().filter(|entry| !entry.is_hook) {
            let is_unproven = entry.requires_pruning && entry.requires_confirmation;
            let set = if is_unproven { &mut recorded.to_confirm } else { &mut recorded.from_git };
            set.insert(entry.key);
        }
        recorded
    }

    /// The same, with these objects too.
    #[must_use]
    pub fn with(mut self, keys: impl IntoIterator<Item = ObjectKey>) -> Self {
        self.from_git.extend(keys);
        self
    }

    /// Did Git have this object?
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.from_git.contains(key)
    }

    /// The same for an object whose own options ask for a confirmation: then the status does not tell the two cases apart,
    /// and a user is asked in any case.
    pub fn may_contain(&self, key: &ObjectKey) -> bool {
        self.contains(key) || self.to_confirm.contains(key)
    }

    /// All of them, in the order of their keys.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.from_git.iter()
    }
}

/// Whether it is proven that an app brought an object into the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Provenance {
    /// plumb or Argo CD wrote it, and the app's status had it.
    #[default]
    Proven,
    /// The app's status had it, but no entry of `managedFields` is plumb's or Argo CD's.
    NeverWritten,
    /// The app's status never listed it as an object from Git.
    NotRecorded,
}

impl Provenance {
    /// Of a live object with this app's mark.
    pub fn of(live: &Manifest, is_recorded: bool) -> Self {
        match (is_recorded, is_written_by_us(live)) {
            (true, true) => Self::Proven,
            (true, false) => Self::NeverWritten,
            (false, _) => Self::NotRecorded,
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proven => "this app created it",
            Self::NeverWritten => "it carries this app's tracking mark, but plumb never wrote it",
            Self::NotRecorded => {
                "it carries this app's tracking mark, but no earlier status of this app lists it as an object from Git"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", Some("n".to_owned()), name)
    }

    fn live(managers: &[&str]) -> Manifest {
        let entries: Vec<_> =
            managers.iter().map(|manager| json!({"manager": manager, "operation": "Update"})).collect();
        Manifest::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "n", "managedFields": entries},
        }))
        .expect("an object")
    }

    #[test]
    fn a_mark_alone_proves_nothing() {
        assert_eq!(Provenance::of(&live(&["kubectl-annotate"]), true), Provenance::NeverWritten);
        assert_eq!(Provenance::of(&live(&[]), true), Provenance::NeverWritten);
        assert_eq!(Provenance::of(&live(&["kubectl", "argocd-controller"]), false), Provenance::NotRecorded);
        assert_eq!(Provenance::of(&live(&["kubectl-annotate"]), false), Provenance::NotRecorded);
        assert_eq!(Provenance::of(&live(&["kubectl", "argocd-controller"]), true), Provenance::Proven);
    }

    #[test]
    fn a_write_to_a_subresource_is_no_write_of_the_object() {
        let live = Manifest::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "managedFields": [
                {"manager": "argocd-controller", "operation": "Update", "subresource": "status"}]},
        }))
        .expect("an object");
        assert_eq!(Provenance::of(&live, true), Provenance::NeverWritten);
    }

    #[test]
    fn what_was_first_seen_outside_of_git_stays_unrecorded() {
        let entry = |name: &str, is_hook, requires_pruning, requires_confirmation| StatusEntry {
            key: key(name),
            is_hook,
            requires_pruning,
            requires_confirmation,
        };
        let recorded = RecordedObjects::from_status([
            entry("in-git", false, false, false),
            entry("in-git-guarded", false, false, true),
            entry("left-git", false, true, false),
            entry("never-in-git", false, true, true),
            entry("hook", true, true, false),
        ]);
        let names: Vec<&str> = recorded.keys().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["in-git", "in-git-guarded", "left-git"]);
        assert!(recorded.with([key("applied")]).contains(&key("applied")));
    }
}
