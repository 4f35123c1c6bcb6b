//! The right to delete one object.

use plumb_core::desired::{ObjectOptions, PruneOption};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::DeletionProof;

use super::permit::{Ownership, WriteFacts, WritePermit};
use super::refusal::Refusal;
use crate::client::Impersonation;
use crate::live::AllListed;

/// Why an object may be deleted. A ground that needs a proof holds it, so that a deletion without the proof does not
/// compile.
#[derive(Clone, Copy, Debug)]
pub enum DeletionGround<'a> {
    /// The object left Git.
    Prune {
        /// The desired set is complete and the live objects are all listed.
        proof: &'a DeletionProof,
        /// May a prune leave the app without objects (`allowEmpty`)?
        allow_empty: bool,
    },
    /// The Application is being deleted together with its objects.
    AppDeleted {
        /// The live objects are all listed: the app's objects are known.
        listed: &'a AllListed,
    },
    /// The delete policy of a hook asks for it.
    FinishedHook,
    /// plumb creates the object again at once, because an immutable field has to change (`Replace` and `Force`).
    Recreate,
}

/// Proof that a tombstone holds an object, so that its deletion can be undone. Only
/// [`Gate::keep_tombstone`](super::Gate::keep_tombstone) makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TombstoneKept {
    pub(super) uid: String,
}

/// The right to delete one object. [`DeletePermit::judge`] checks it; a user's command needs no check.
#[derive(Clone, Debug)]
pub struct DeletePermit {
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) impersonation: Option<Impersonation>,
    /// The gate deletes nothing while a tombstone is missing.
    pub(super) needs_tombstone: bool,
}

impl DeletePermit {
    /// Checks every fact. The permit is for `live` and its uid: another object of the same name is not deleted.
    pub fn judge(facts: WriteFacts, live: &Manifest, ground: DeletionGround<'_>) -> Result<Self, Refusal> {
        // An object that Git asks for under this name may be recreated even if plumb did not create it: a Job
        // of an earlier `helm install` must not block a hook forever.
        let is_recreated = matches!(ground, DeletionGround::FinishedHook | DeletionGround::Recreate);
        if facts.ownership == Ownership::Adopted && !is_recreated {
            return Err(Refusal::Untracked { key: facts.key });
        }
        let needs_tombstone = match ground {
            DeletionGround::Prune { .. } | DeletionGround::AppDeleted { .. } | DeletionGround::Recreate => {
                true
            }
            // A hook comes from Git again. An object that was there before the hook does not.
            DeletionGround::FinishedHook => facts.ownership != Ownership::Ours,
        };
        let permit = WritePermit::judge(facts)?;
        let refuse = |why| Err(Refusal::NotDeleted { key: permit.key.clone(), why });
        if let DeletionGround::Prune { proof, allow_empty } = ground {
            if !proof.has_left(&permit.key) {
                return refuse("it is in Git");
            }
            if proof.has_no_objects() && !allow_empty {
                return refuse("Git has no objects at all and allowEmpty is not set");
            }
            if ObjectOptions::parse(live).prune == Some(PruneOption::Never) {
                return refuse("its sync options forbid it");
            }
        }
        let Some(uid) = live.uid().filter(|uid| !uid.is_empty()) else {
            return refuse("its uid is not known");
        };
        Ok(Self {
            key: permit.key,
            uid: uid.to_owned(),
            impersonation: permit.impersonation,
            needs_tombstone,
        })
    }

    /// The permit of a user at the command line who asked to delete this object. The facts of an app do not apply:
    /// the user's own RBAC permissions decide.
    pub fn requested_by_user(key: ObjectKey, uid: &str) -> Self {
        Self { key, uid: uid.to_owned(), impersonation: None, needs_tombstone: false }
    }

    /// This permit, now that a tombstone holds the object. A tombstone of another object changes nothing.
    #[must_use]
    pub fn with_tombstone(self, tombstone: &TombstoneKept) -> Self {
        let needs_tombstone = self.needs_tombstone && self.uid != tombstone.uid;
        Self { needs_tombstone, ..self }
    }

    /// This permit, after a person allowed the deletion of this object without a copy.
    #[must_use]
    pub fn without_copy(self) -> Self {
        Self { needs_tombstone: false, ..self }
    }

    /// Does the gate ask for a tombstone before it deletes the object?
    pub fn needs_tombstone(&self) -> bool {
        self.needs_tombstone
    }

    /// The object that it is for.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use plumb_core::desired::{DesiredObject, DesiredSet};
    use plumb_core::live::LiveSet;
    use serde_json::json;

    use super::super::permit::tests::{facts, key};
    use super::*;

    /// The proof for a desired set of these `ConfigMap`s.
    fn proof(names: &[&str]) -> DeletionProof {
        let mut set = DesiredSet::default();
        for name in names {
            let object = DesiredObject {
                key: key(name),
                manifest: manifest(name, &json!({})),
                options: ObjectOptions::default(),
                origin: None,
            };
            set.objects.insert(key(name), object);
        }
        let live = LiveSet { complete: true, ..LiveSet::default() };
        DeletionProof::new(&set.complete().unwrap(), &live).unwrap()
    }

    fn manifest(name: &str, annotations: &serde_json::Value) -> Manifest {
        Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "a", "uid": "u1", "annotations": annotations}}))
        .unwrap()
    }

    fn prune(proof: &DeletionProof) -> DeletionGround<'_> {
        DeletionGround::Prune { proof, allow_empty: false }
    }

    fn judge(facts: WriteFacts, ground: DeletionGround<'_>) -> Result<DeletePermit, String> {
        DeletePermit::judge(facts, &manifest("x", &json!({})), ground).map_err(|error| error.to_string())
    }

    #[test]
    fn each_fact_alone_can_refuse_a_deletion() {
        let proof = proof(&["y"]);
        assert!(judge(facts(), prune(&proof)).is_ok());
        let never = manifest("x", &json!({"argocd.argoproj.io/sync-options": "Prune=false"}));
        let error = DeletePermit::judge(facts(), &never, prune(&proof)).unwrap_err();
        assert_eq!(error.to_string(), "cannot delete ConfigMap a/x: its sync options forbid it");
        let unknown = Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "a"}}));
        assert!(DeletePermit::judge(facts(), &unknown.unwrap(), prune(&proof)).is_err());
        assert!(judge(WriteFacts { paused: Some(String::new()), ..facts() }, prune(&proof)).is_err());
        let adopted = || WriteFacts { ownership: Ownership::Adopted, ..facts() };
        assert!(judge(adopted(), prune(&proof)).is_err(), "an untracked object is not deleted");
        // An object that Git asks for is recreated even if plumb did not make it.
        for ground in [DeletionGround::FinishedHook, DeletionGround::Recreate] {
            assert!(judge(adopted(), ground).is_ok());
        }
    }

    #[test]
    fn an_object_in_git_is_not_pruned_and_an_empty_desired_set_prunes_nothing() {
        let wanted = proof(&["x", "y"]);
        let refused = judge(facts(), prune(&wanted)).unwrap_err();
        assert_eq!(refused, "cannot delete ConfigMap a/x: it is in Git");
        let empty = proof(&[]);
        assert!(judge(facts(), prune(&empty)).unwrap_err().contains("allowEmpty"));
        assert!(judge(facts(), DeletionGround::Prune { proof: &empty, allow_empty: true }).is_ok());
    }

    #[test]
    fn a_deletion_that_git_cannot_undo_needs_a_tombstone_of_the_same_object() {
        let proof = proof(&["y"]);
        let permit = judge(facts(), prune(&proof)).unwrap();
        assert!(permit.needs_tombstone());
        let other = TombstoneKept { uid: "u2".to_owned() };
        let permit = permit.with_tombstone(&other);
        assert!(permit.needs_tombstone());
        assert!(!permit.with_tombstone(&TombstoneKept { uid: "u1".to_owned() }).needs_tombstone());
        let hook = |ownership| judge(WriteFacts { ownership, ..facts() }, DeletionGround::FinishedHook);
        assert!(!hook(Ownership::Ours).unwrap().needs_tombstone());
        assert!(hook(Ownership::Adopted).unwrap().needs_tombstone());
        assert!(!DeletePermit::requested_by_user(key("x"), "u1").needs_tombstone());
    }
}
