//! The right to delete one object.

use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::object::ObjectKey;

use super::permit::{Ownership, WriteFacts, WritePermit};
use super::refusal::Refusal;
use crate::client::Impersonation;

/// Why an object may be deleted.
#[derive(Clone, Copy, Debug)]
pub enum DeletionReason<'set> {
    /// It is no longer in Git. The set proves that everything was rendered.
    Prune {
        /// All that Git asks for.
        desired: &'set Complete<DesiredSet>,
        /// May the app become empty?
        allow_empty: bool,
    },
    /// Its Application is being deleted, with its objects.
    AppDeleted,
    /// A hook's object whose delete policy says so.
    HookFinished,
    /// It is made anew at once, because a field that cannot be changed has to (`Replace` and `Force`).
    Recreate,
}

/// What the deletion of one object rests on, besides the facts of any write.
#[derive(Clone, Copy, Debug)]
pub struct DeletionProof<'set> {
    /// Why.
    pub reason: DeletionReason<'set>,
    /// Did every watch behind the live set finish its first list?
    pub live_complete: bool,
    /// Does the prune budget allow it, or did a person confirm?
    pub within_budget: bool,
    /// Do the object's own options (`Prune=`, `Delete=`) allow it, or did a person confirm?
    pub options_allow: bool,
    /// Is the object in a tombstone, or is there nothing to bring back?
    pub tombstone: Tombstone,
}

/// Can the deletion be undone?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tombstone {
    /// The object was written to a tombstone before.
    Kept,
    /// Nothing would be worth bringing back: a hook's object, or one that is made anew at once.
    NotNeeded,
    /// Not yet.
    Missing,
}

/// The right to delete one object. It can only come out of a judgement.
#[derive(Clone, Debug)]
pub struct DeletePermit {
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) impersonation: Option<Impersonation>,
}

impl DeletePermit {
    /// Decides. `uid` is that of the object that was judged: a new one of the same name will not be deleted.
    pub fn judge(facts: WriteFacts, uid: &str, proof: &DeletionProof<'_>) -> Result<Self, Refusal> {
        // What Git asks for, under this very name, may be made anew, whoever left it there: a Job of an earlier
        // `helm install` must not be in the way of the hook for ever.
        let is_made_anew = matches!(proof.reason, DeletionReason::HookFinished | DeletionReason::Recreate);
        if facts.ownership == Ownership::Adopted && !is_made_anew {
            let owner = "nobody that plumb knows: it is not tracked".to_owned();
            return Err(Refusal::Foreign { key: facts.key, owner });
        }
        let permit = WritePermit::judge(facts)?;
        let no_proof = |why| Err(Refusal::NoProof { key: permit.key.clone(), why });
        match proof.reason {
            DeletionReason::Prune { desired, allow_empty } => {
                let desired = desired.get();
                if desired.objects.contains_key(&permit.key) {
                    return no_proof("Git asks for it");
                }
                if desired.objects.is_empty() && !allow_empty {
                    return no_proof("Git asks for nothing at all and allowEmpty is not set");
                }
                if !proof.live_complete {
                    return no_proof("the live objects are not all known yet");
                }
                if !proof.within_budget {
                    return no_proof("the prune budget is used up; a person has to confirm");
                }
            }
            DeletionReason::AppDeleted => {
                if !proof.live_complete {
                    return no_proof("the live objects are not all known yet");
                }
            }
            DeletionReason::HookFinished | DeletionReason::Recreate => {}
        }
        if !proof.options_allow {
            return no_proof("its options forbid it, or ask a person to confirm");
        }
        if proof.tombstone == Tombstone::Missing {
            return no_proof("it is not in a tombstone yet");
        }
        if uid.is_empty() {
            return no_proof("it is not known which object of that name is meant");
        }
        Ok(Self { key: permit.key, uid: uid.to_owned(), impersonation: permit.impersonation })
    }

    /// The permit of a person at the command line, who asked for the deletion of this very object.
    pub fn asked_by_person(key: ObjectKey, uid: &str) -> Self {
        Self { key, uid: uid.to_owned(), impersonation: None }
    }

    /// The object that it is for.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use plumb_core::desired::DesiredObject;
    use plumb_core::object::Manifest;
    use serde_json::json;

    use super::super::permit::tests::{facts, key};
    use super::*;

    /// What Git asks for: these `ConfigMap`s.
    fn desired(names: &[&str]) -> Complete<DesiredSet> {
        let mut set = DesiredSet::default();
        for name in names {
            let manifest = Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "a"}}))
            .unwrap();
            let object = DesiredObject {
                key: key(name),
                manifest,
                options: plumb_core::desired::ObjectOptions::default(),
                origin: None,
            };
            set.objects.insert(key(name), object);
        }
        Complete::rendered_without_error(set)
    }

    fn proof(desired: &Complete<DesiredSet>) -> DeletionProof<'_> {
        DeletionProof {
            reason: DeletionReason::Prune { desired, allow_empty: false },
            live_complete: true,
            within_budget: true,
            options_allow: true,
            tombstone: Tombstone::Kept,
        }
    }

    fn refused(facts: WriteFacts, proof: &DeletionProof<'_>) -> String {
        DeletePermit::judge(facts, "u1", proof).unwrap_err().to_string()
    }

    #[test]
    fn each_gap_in_the_proof_alone_refuses_a_deletion() {
        let set = desired(&["y"]);
        assert!(DeletePermit::judge(facts(), "u1", &proof(&set)).is_ok());
        let gaps = [
            DeletionProof { live_complete: false, ..proof(&set) },
            DeletionProof { within_budget: false, ..proof(&set) },
            DeletionProof { options_allow: false, ..proof(&set) },
            DeletionProof { tombstone: Tombstone::Missing, ..proof(&set) },
        ];
        for gap in gaps {
            assert!(refused(facts(), &gap).starts_with("ConfigMap a/x is not deleted"), "{gap:?}");
        }
        assert!(DeletePermit::judge(facts(), "", &proof(&set)).is_err());
        assert!(
            DeletePermit::judge(WriteFacts { paused: Some(String::new()), ..facts() }, "u1", &proof(&set))
                .is_err()
        );
        // What nobody tracks is never deleted, though it may be taken over.
        assert!(
            DeletePermit::judge(WriteFacts { ownership: Ownership::Adopted, ..facts() }, "u1", &proof(&set))
                .is_err()
        );
        // Unless Git asks for it: then it is made anew.
        for reason in [DeletionReason::HookFinished, DeletionReason::Recreate] {
            let adopted = WriteFacts { ownership: Ownership::Adopted, ..facts() };
            assert!(DeletePermit::judge(adopted, "u1", &DeletionProof { reason, ..proof(&set) }).is_ok());
        }
    }

    #[test]
    fn what_git_asks_for_is_not_pruned_and_nothing_at_all_is_not_believed() {
        let wanted = desired(&["x", "y"]);
        assert_eq!(refused(facts(), &proof(&wanted)), "ConfigMap a/x is not deleted: Git asks for it");
        let empty = desired(&[]);
        assert!(refused(facts(), &proof(&empty)).contains("allowEmpty"));
        let reason = DeletionReason::Prune { desired: &empty, allow_empty: true };
        assert!(DeletePermit::judge(facts(), "u1", &DeletionProof { reason, ..proof(&empty) }).is_ok());
    }
}
