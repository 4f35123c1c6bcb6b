//! Reading objects: from the store where they are kept whole, else from the API server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use plumb_core::desired::{Complete, DesiredSet};
use plumb_core::live::LiveSet;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::plan::{DeletionProof, NoProof};

use super::record::Origin;
use super::state::Id;
use super::store::LiveStore;
use crate::error::ApiError;
use crate::packed::PackedObject;

/// The live objects of one app.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The objects that it tracks, and those whose key is in its desired set.
    pub live: LiveSet,
    /// Objects that exist and could not be read. They must not be treated as missing.
    pub unreadable: Vec<(ObjectKey, ApiError)>,
}

/// Proof that every watch of a store had finished its first list. Only the store makes one.
#[derive(Debug)]
pub struct AllListed(());

/// How many objects that are not kept whole are fetched at once.
const FETCH_AT_ONCE: usize = 16;

impl LiveStore {
    /// The proof that all live objects are listed, now or within `wait`.
    pub async fn all_listed_within(&self, wait: Duration) -> Result<AllListed, NoProof> {
        if self.is_complete_within(wait).await { Ok(AllListed(())) } else { Err(NoProof::LiveIncomplete) }
    }

    /// The proof that objects which are not in `desired` have left Git: `desired` is complete, and all live objects are
    /// listed, now or within `wait`.
    pub async fn prove_deletions(
        &self,
        desired: &Complete<DesiredSet>,
        wait: Duration,
    ) -> Result<DeletionProof, NoProof> {
        let complete = self.is_complete_within(wait).await;
        DeletionProof::new(desired, &LiveSet { complete, ..LiveSet::default() })
    }

    /// The live objects of one app: those it tracks, and those whose key is `wanted`. The store remembers the
    /// wanted keys: their objects are kept whole from now on, and their changes concern the app, until the
    /// next snapshot or [`forget`](Self::forget). The same holds for `beside`, objects that the app depends
    /// on; they are not part of the snapshot.
    pub async fn snapshot(&self, instance: &str, wanted: &[ObjectKey], beside: &[ObjectKey]) -> Snapshot {
        let complete = self.is_complete();
        let StoreRead { packed, to_fetch } = self.read_store(instance, wanted, beside);
        let mut snapshot =
            Snapshot { live: LiveSet { complete, ..LiveSet::default() }, ..Snapshot::default() };
        let mut to_fetch = to_fetch;
        for (key, body) in packed {
            match body.read() {
                Some(object) => {
                    snapshot.live.objects.insert(key, Arc::new(object));
                }
                None => to_fetch.push(key),
            }
        }
        let fetched = futures::stream::iter(to_fetch)
            .map(|key| async move {
                let result = self.fetch(&key).await;
                (key, result)
            })
            .buffer_unordered(FETCH_AT_ONCE);
        let fetched: Vec<_> = fetched.collect().await;
        for (key, result) in fetched {
            match result {
                Ok(Some(object)) => {
                    snapshot.live.objects.insert(key, Arc::new(object));
                }
                // A kind that is not served has no objects.
                Ok(None) | Err(ApiError::UnknownKind { .. }) => {}
                Err(error) => snapshot.unreadable.push((key, error)),
            }
        }
        snapshot
    }

    fn read_store(&self, instance: &str, wanted: &[ObjectKey], beside: &[ObjectKey]) -> StoreRead {
        let mut state = self.core.state_mut();
        let instance = state.intern(instance);
        let tracked = state.tracked(&instance);
        let mut ids: BTreeSet<Id> = tracked.iter().copied().collect();
        let mut to_remember = Vec::new();
        let mut read = StoreRead::default();
        for key in wanted {
            let found = state.find_key(key);
            if found.is_none() && !state.covers(key) {
                // No list covers it: the kind is not watched, not in this namespace, or not listed yet.
                read.to_fetch.push(key.clone());
            }
            let is_tracked = found.is_some_and(|id| !ids.insert(id));
            if is_tracked {
                continue;
            }
            to_remember.push(state.address(key));
        }
        for key in beside {
            to_remember.push(state.address(key));
        }
        state.want(&instance, to_remember);
        for id in ids {
            let Some(record) = state.record(id) else { continue };
            let key = state.key(&record.address);
            match &record.body {
                Some(body) => read.packed.push((key, body.clone())),
                None => read.to_fetch.push(key),
            }
        }
        read
    }

    /// One object, whole: from the store if it is kept there, else from the server. `None` if it does not
    /// exist.
    pub async fn get_whole(&self, key: &ObjectKey) -> Result<Option<Arc<Manifest>>, ApiError> {
        if let Some(object) = self.get_kept(key) {
            return Ok(Some(Arc::new(object)));
        }
        {
            let state = self.core.state();
            if state.covers(key) && state.find_key(key).is_none() {
                return Ok(None);
            }
        }
        Ok(self.fetch(key).await?.map(Arc::new))
    }

    /// One object, if it is kept whole.
    pub fn get_kept(&self, key: &ObjectKey) -> Option<Manifest> {
        let body = {
            let state = self.core.state();
            state.record(state.find_key(key)?)?.body.clone()?
        };
        body.read()
    }

    /// One object in another version than the watched one, from the server.
    pub async fn get_at(
        &self,
        gvk: &GroupVersionKind,
        key: &ObjectKey,
    ) -> Result<Option<Manifest>, ApiError> {
        self.core.client.get_at(gvk, key.namespace.as_deref(), &key.name).await
    }

    /// From the server, in the watched version, and into the store.
    async fn fetch(&self, key: &ObjectKey) -> Result<Option<Manifest>, ApiError> {
        let resource = {
            let state = self.core.state();
            state.table_of(&key.group_kind()).map(|(_, table)| table.resource.clone())
        };
        let fetched = match resource {
            Some(resource) => self.core.client.get_as(&resource, key.namespace.as_deref(), &key.name).await?,
            None => self.core.client.get(key).await?,
        };
        if let Some(object) = &fetched {
            self.observe(object, Origin::Watched);
        }
        Ok(fetched)
    }
}

#[derive(Default)]
struct StoreRead {
    packed: Vec<(ObjectKey, PackedObject)>,
    to_fetch: Vec<ObjectKey>,
}
