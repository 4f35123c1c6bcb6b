//! Sends writes that have a permit, while the lease is held.

use plumb_core::desired::Propagation;
use plumb_core::object::Manifest;

use super::deletion::{DeletePermit, TombstoneKept};
use super::own_write::{OwnWrite, own};
use super::permit::WritePermit;
use super::refusal::{Refusal, WriteError};
use super::target::{same_object, same_target};
use crate::client::{ClusterClient, Impersonation};
use crate::error::{ApiError, Reason};
use crate::lease::Fence;
use crate::live::LiveStore;
use crate::write::{Applied, ApplyOptions, DeleteOptions, Deleted, Effect, Patch, PatchOptions, Target};

/// The gate of one cluster.
#[derive(Clone)]
pub struct Gate {
    client: ClusterClient,
    fence: Fence,
    /// Written objects are put here at once, before the watch event arrives.
    store: Option<LiveStore>,
}

impl Gate {
    /// A gate to the cluster of `client`, open while `fence` is. Written objects are put into `store` at
    /// once.
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

    /// Create. A manifest with `generateName` passes if kind and namespace are those of the permit.
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

    /// Delete the object of the permit, by its uid.
    pub async fn delete(
        &self,
        permit: &DeletePermit,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, WriteError> {
        same_target(&permit.key, target)?;
        if permit.needs_tombstone {
            let why = "no tombstone holds it yet";
            return Err(Refusal::NotDeleted { key: permit.key.clone(), why }.into());
        }
        let client = self.client_for(permit.impersonation.as_ref());
        let deleted = self.fenced(client.send_delete(target, &permit.uid, options)).await?;
        if let (Some(store), Deleted::Going(object)) = (&self.store, &deleted) {
            store.observe_written(object);
        }
        Ok(deleted)
    }

    /// Stores `live` in these tombstone Secrets, in their order, in the cluster of this gate. A Secret of that name that
    /// exists is of an earlier attempt: its name follows from the object's uid and resource version. Also returns the
    /// Secrets that were created.
    pub async fn keep_tombstone(
        &self,
        live: &Manifest,
        tombstone: Vec<Manifest>,
    ) -> Result<(TombstoneKept, Vec<Manifest>), WriteError> {
        let mut created = Vec::new();
        for manifest in tombstone {
            let create = OwnWrite::Create { manifest, field_manager: "plumb".to_owned() };
            match self.write_own(&create).await {
                Ok(applied) => created.extend(applied.map(|applied| applied.manifest)),
                Err(error) if error.api().and_then(ApiError::reason) == Some(&Reason::AlreadyExists) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((TombstoneKept { uid: live.uid().unwrap_or_default().to_owned() }, created))
    }

    /// Writes one of plumb's own objects. `None` after a deletion.
    pub async fn write_own(&self, write: &OwnWrite) -> Result<Option<Applied>, WriteError> {
        own(write)?;
        let client = &self.client;
        match write {
            OwnWrite::Apply { manifest, options } => {
                let applied = self.fenced(client.send_apply(manifest, options, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Create { manifest, field_manager }
            | OwnWrite::CreateGenerated { manifest, field_manager } => {
                let applied = self.fenced(client.send_create(manifest, field_manager, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Patch { target, patch, options } => {
                let applied = self.fenced(client.send_patch(target, patch, options, Effect::Real)).await?;
                Ok(Some(self.observed(applied)))
            }
            OwnWrite::Delete { target, uid } | OwnWrite::DeleteGenerated { target, uid } => {
                // These objects have no children that the garbage collector would have to delete first.
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

    /// Runs a request only while the lease is held, and drops it when the lease is lost.
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
