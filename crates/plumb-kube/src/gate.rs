//! The one gate: every write passes it, and there is no other way to write.
//!
//! A write needs a permit, and a permit is the result of a judgement over facts that the engine states: is the
//! app paused, does its project allow the object, is the object ours. A deletion needs a proof on top. The
//! gate itself adds what only the moment of sending can tell: that the lease is still held, and that what is
//! sent is what was judged. A request that is in flight when the lease is lost is dropped.

use plumb_core::app::AppId;
use plumb_core::desired::{Complete, DesiredSet, Propagation};
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};

use crate::client::{ClusterClient, Impersonation};
use crate::error::ApiError;
use crate::lease::{Fence, FenceLost};
use crate::live::LiveStore;
use crate::write::{Applied, ApplyOptions, DeleteOptions, Deleted, Effect, Patch, PatchOptions, Target};

/// What the right to write one object rests on. The engine states it, [`WritePermit::judge`] decides.
#[derive(Clone, Debug)]
pub struct WriteFacts {
    /// The app on whose behalf.
    pub app: AppId,
    /// The object.
    pub key: ObjectKey,
    /// Is the app (or the object) held by a person, and with which reason?
    pub paused: Option<String>,
    /// What the app's project says about this object in this place.
    pub project: ProjectAnswer,
    /// Whose the live object is.
    pub ownership: Ownership,
    /// Whose permissions to use, where the project names a service account.
    pub impersonation: Option<Impersonation>,
}

/// What a project says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectAnswer {
    /// It may be there.
    Allows,
    /// It may not.
    Denies {
        /// Which rule.
        why: String,
    },
}

/// Whose a live object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// There is none yet.
    Absent,
    /// It carries our app's mark.
    Ours,
    /// It carries no mark, or another one, and taking it over is what Git and the settings ask.
    Adopted,
    /// It belongs to somebody else and is not to be taken.
    Foreign {
        /// Who.
        owner: String,
    },
}

/// Why a write was not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Held by a person.
    #[error("{app} is paused: {reason}")]
    Paused {
        /// Which app.
        app: String,
        /// Why.
        reason: String,
    },
    /// The project's rules.
    #[error("{key} is not permitted: {why}")]
    Project {
        /// Which object.
        key: ObjectKey,
        /// Which rule.
        why: String,
    },
    /// Somebody else's object.
    #[error("{key} belongs to {owner}")]
    Foreign {
        /// Which object.
        key: ObjectKey,
        /// Who.
        owner: String,
    },
    /// A deletion without proof.
    #[error("{key} is not deleted: {why}")]
    NoProof {
        /// Which object.
        key: ObjectKey,
        /// What is missing.
        why: &'static str,
    },
    /// What is to be sent is not what was judged.
    #[error("the permit is for {permitted}, not for {sent}")]
    OtherObject {
        /// The permit's object.
        permitted: ObjectKey,
        /// What was to be sent.
        sent: String,
    },
    /// Only plumb's own objects are written without a permit.
    #[error("{what} is not one of plumb's own objects")]
    NotOwn {
        /// What was to be sent.
        what: String,
    },
}

/// The right to create or change one object. It can only come out of a judgement.
#[derive(Clone, Debug)]
pub struct WritePermit {
    key: ObjectKey,
    impersonation: Option<Impersonation>,
}

impl WritePermit {
    /// Decides.
    pub fn judge(facts: WriteFacts) -> Result<Self, Refusal> {
        if let Some(reason) = facts.paused {
            return Err(Refusal::Paused { app: facts.app.to_string(), reason });
        }
        if let ProjectAnswer::Denies { why } = facts.project {
            return Err(Refusal::Project { key: facts.key, why });
        }
        if let Ownership::Foreign { owner } = facts.ownership {
            return Err(Refusal::Foreign { key: facts.key, owner });
        }
        Ok(Self { key: facts.key, impersonation: facts.impersonation })
    }

    /// The permit of a person at the command line, who asked for this very object by name.
    pub fn asked_by_person(key: ObjectKey) -> Self {
        Self { key, impersonation: None }
    }

    /// The object that it is for.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

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
    key: ObjectKey,
    uid: String,
    impersonation: Option<Impersonation>,
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

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The gate did not let it through.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// We are not the leader (any more). The outcome of a request that was in flight is not known.
    #[error(transparent)]
    NotLeader(#[from] FenceLost),
    /// The API server did not do it.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl WriteError {
    /// The API server's refusal, if it was one.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            Self::Refused(_) | Self::NotLeader(_) => None,
        }
    }
}

/// A write of plumb's own bookkeeping: statuses, reports, events, tombstones. It needs the lease, no permit.
#[derive(Clone, Debug)]
pub enum OwnWrite {
    /// A report or another `plumb.dev` object.
    Apply {
        /// The object.
        manifest: Manifest,
        /// How.
        options: ApplyOptions,
    },
    /// An event, a tombstone, a report, the project `default`.
    Create {
        /// The object.
        manifest: Manifest,
        /// Who will own the fields.
        field_manager: String,
    },
    /// The status, an annotation or a finalizer of an `argoproj.io` or `plumb.dev` object.
    Patch {
        /// Which object.
        target: Target,
        /// The change.
        patch: Patch,
        /// How.
        options: PatchOptions,
    },
    /// An old report or tombstone.
    Delete {
        /// Which object.
        target: Target,
        /// Its uid.
        uid: String,
    },
}

/// The `type` of the Secrets that hold deleted objects.
pub const TOMBSTONE_TYPE: &str = "plumb.dev/tombstone";
/// How their names begin.
pub const TOMBSTONE_PREFIX: &str = "plumb-tombstone-";

/// The gate of one cluster.
#[derive(Clone)]
pub struct Gate {
    client: ClusterClient,
    fence: Fence,
    /// What is written is known at once, before the watch brings it.
    store: Option<LiveStore>,
}

impl Gate {
    /// A gate to the cluster of `client`, open while `fence` is held. Objects that were written are put into
    /// `store` at once.
    pub fn new(client: ClusterClient, fence: Fence, store: Option<LiveStore>) -> Self {
        Self { client, fence, store }
    }

    /// Server-side apply.
    pub async fn apply(
        &self,
        permit: &WritePermit,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Applied, WriteError> {
        same_object(&permit.key, manifest)?;
        let client = self.client_for(permit.impersonation.as_ref());
        let applied = self.fenced(client.send_apply(manifest, options, Effect::Real)).await?;
        Ok(self.observed(applied))
    }

    /// Create. A manifest with `generateName` is let through if kind and namespace are the permit's.
    pub async fn create(
        &self,
        permit: &WritePermit,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, WriteError> {
        same_object(&permit.key, manifest)?;
        let client = self.client_for(permit.impersonation.as_ref());
        let applied = self.fenced(client.send_create(manifest, field_manager, Effect::Real)).await?;
        Ok(self.observed(applied))
    }

    /// Replace, at the resource version that the manifest names if it names one.
    pub async fn replace(
        &self,
        permit: &WritePermit,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, WriteError> {
        same_object(&permit.key, manifest)?;
        let client = self.client_for(permit.impersonation.as_ref());
        let applied = self.fenced(client.send_replace(manifest, field_manager, None, Effect::Real)).await?;
        Ok(self.observed(applied))
    }

    /// Patch: moves the ownership of fields, removes a finalizer, restarts a workload.
    pub async fn patch(
        &self,
        permit: &WritePermit,
        target: &Target,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Applied, WriteError> {
        same_target(&permit.key, target)?;
        let client = self.client_for(permit.impersonation.as_ref());
        let applied = self.fenced(client.send_patch(target, patch, options, Effect::Real)).await?;
        Ok(self.observed(applied))
    }

    /// Delete the very object that was judged.
    pub async fn delete(
        &self,
        permit: &DeletePermit,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, WriteError> {
        same_target(&permit.key, target)?;
        let client = self.client_for(permit.impersonation.as_ref());
        let deleted = self.fenced(client.send_delete(target, &permit.uid, options)).await?;
        if let (Some(store), Deleted::Going(object)) = (&self.store, &deleted) {
            store.observe_written(object);
        }
        Ok(deleted)
    }

    /// Writes plumb's own bookkeeping. `None` after a deletion.
    pub async fn write_own(&self, write: &OwnWrite) -> Result<Option<Applied>, WriteError> {
        own(write)?;
        let client = &self.client;
        match write {
            OwnWrite::Apply { manifest, options } => {
                let applied = self.fenced(client.send_apply(manifest, options, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Create { manifest, field_manager } => {
                let applied = self.fenced(client.send_create(manifest, field_manager, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Patch { target, patch, options } => {
                let applied = self.fenced(client.send_patch(target, patch, options, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Delete { target, uid } => {
                // These own nothing that the garbage collector would have to look for first.
                let options =
                    DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
                self.fenced(client.send_delete(target, uid, &options)).await?;
                Ok(None)
            }
        }
    }

    fn client_for(&self, impersonation: Option<&Impersonation>) -> ClusterClient {
        match impersonation {
            Some(impersonation) => self.client.impersonating(impersonation.clone()),
            None => self.client.clone(),
        }
    }

    /// Lets a request run only while the lease is held, and drops it the moment it is lost.
    async fn fenced<T>(&self, request: impl Future<Output = Result<T, ApiError>>) -> Result<T, WriteError> {
        self.fence.check()?;
        tokio::select! {
            biased;
            lost = self.fence.lost() => Err(lost.into()),
            answer = request => Ok(answer?),
        }
    }

    fn observed(&self, applied: Applied) -> Applied {
        if let Some(store) = &self.store {
            store.observe_written(&applied.manifest);
        }
        applied
    }
}

fn same_object(permitted: &ObjectKey, manifest: &Manifest) -> Result<(), Refusal> {
    let named = match (manifest.name(), manifest.generate_name()) {
        (Some(name), _) => name == permitted.name,
        (None, Some(prefix)) => permitted.name.starts_with(prefix),
        (None, None) => false,
    };
    let same = named
        && manifest.group() == permitted.group
        && manifest.kind() == permitted.kind
        && manifest.namespace() == permitted.namespace.as_deref();
    if same { Ok(()) } else { Err(other_object(permitted, &describe(manifest))) }
}

fn same_target(permitted: &ObjectKey, target: &Target) -> Result<(), Refusal> {
    let same = target.name == permitted.name
        && target.gvk.group == permitted.group
        && target.gvk.kind == permitted.kind
        && target.namespace == permitted.namespace;
    if same { Ok(()) } else { Err(other_object(permitted, &format!("{} {}", target.gvk, target.name))) }
}

fn other_object(permitted: &ObjectKey, sent: &str) -> Refusal {
    Refusal::OtherObject { permitted: permitted.clone(), sent: sent.to_owned() }
}

fn describe(manifest: &Manifest) -> String {
    let name = manifest.name().or(manifest.generate_name()).unwrap_or("without name");
    format!("{} {}/{name}", manifest.gvk(), manifest.namespace().unwrap_or_default())
}

/// The registration of plumb's own witness.
fn is_witness(gvk: &GroupVersionKind, name: &str) -> bool {
    gvk.kind == "MutatingWebhookConfiguration"
        && gvk.group == "admissionregistration.k8s.io"
        && name.starts_with("plumb-witness-")
}

/// Only plumb's own kinds, of the Secrets only tombstones, of the webhooks only the witness, and a first project.
fn own(write: &OwnWrite) -> Result<(), Refusal> {
    let is_event = |group: &str, kind: &str| kind == "Event" && matches!(group, "" | "events.k8s.io");
    let (is_own, what) = match write {
        OwnWrite::Apply { manifest, .. } | OwnWrite::Create { manifest, .. } => {
            let is_tombstone = manifest.group().is_empty()
                && manifest.kind() == "Secret"
                && manifest.value().get("type").and_then(serde_json::Value::as_str) == Some(TOMBSTONE_TYPE)
                && manifest.name().is_some_and(|name| name.starts_with(TOMBSTONE_PREFIX));
            // Made where there is none; never written over.
            let is_default_project = matches!(write, OwnWrite::Create { .. })
                && (manifest.group(), manifest.kind()) == ("argoproj.io", "AppProject")
                && manifest.name() == Some("default");
            let is_own = manifest.group() == "plumb.dev"
                || is_tombstone
                || is_default_project
                || is_witness(&manifest.gvk(), manifest.name().unwrap_or_default())
                || is_event(manifest.group(), manifest.kind());
            (is_own, describe(manifest))
        }
        OwnWrite::Patch { target, .. } => {
            let group = target.gvk.group.as_str();
            let is_own = matches!(group, "argoproj.io" | "plumb.dev") || is_event(group, &target.gvk.kind);
            (is_own, format!("{} {}", target.gvk, target.name))
        }
        OwnWrite::Delete { target, .. } => {
            let is_tombstone = target.gvk.group.is_empty()
                && target.gvk.kind == "Secret"
                && target.name.starts_with(TOMBSTONE_PREFIX);
            let is_own =
                target.gvk.group == "plumb.dev" || is_tombstone || is_witness(&target.gvk, &target.name);
            (is_own, format!("{} {}", target.gvk, target.name))
        }
    };
    if is_own { Ok(()) } else { Err(Refusal::NotOwn { what }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_core::desired::DesiredObject;
    use serde_json::json;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", Some("a".to_owned()), name)
    }

    fn facts() -> WriteFacts {
        WriteFacts {
            app: AppId { namespace: "argocd".to_owned(), name: "app".to_owned() },
            key: key("x"),
            paused: None,
            project: ProjectAnswer::Allows,
            ownership: Ownership::Ours,
            impersonation: None,
        }
    }

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
    fn each_fact_alone_can_refuse_a_write() {
        assert!(WritePermit::judge(facts()).is_ok());
        assert!(WritePermit::judge(WriteFacts { ownership: Ownership::Absent, ..facts() }).is_ok());
        assert!(WritePermit::judge(WriteFacts { ownership: Ownership::Adopted, ..facts() }).is_ok());
        let refusals = [
            WriteFacts { paused: Some("night shift".to_owned()), ..facts() },
            WriteFacts { project: ProjectAnswer::Denies { why: "no ConfigMaps".to_owned() }, ..facts() },
            WriteFacts { ownership: Ownership::Foreign { owner: "other".to_owned() }, ..facts() },
        ]
        .map(|facts| WritePermit::judge(facts).unwrap_err().to_string());
        assert_eq!(
            refusals,
            [
                "argocd/app is paused: night shift",
                "ConfigMap a/x is not permitted: no ConfigMaps",
                "ConfigMap a/x belongs to other",
            ]
        );
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

    #[test]
    fn a_permit_fits_one_object() {
        let manifest = |metadata: serde_json::Value| {
            Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
        };
        let permitted = key("x");
        assert!(same_object(&permitted, &manifest(json!({"name": "x", "namespace": "a"}))).is_ok());
        assert!(same_object(&permitted, &manifest(json!({"name": "x"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"name": "x", "namespace": "b"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"name": "y", "namespace": "a"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"namespace": "a"}))).is_err());
        let generated = manifest(json!({"generateName": "hook-", "namespace": "a"}));
        assert!(same_object(&key("hook-"), &generated).is_ok());
        assert!(same_object(&permitted, &generated).is_err());
    }
}
