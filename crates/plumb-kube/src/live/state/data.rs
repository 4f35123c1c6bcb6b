//! The records with their indices, and the interning of names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use plumb_core::object::{GroupKind, ObjectKey};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::record::{Address, KindId, Record, Uid};
use crate::catalog::Resource;
use crate::packed::{PackedObject, Samples};

/// Position of a record. Free positions are reused.
pub(in crate::live) type Id = u32;

#[derive(Default)]
pub(in crate::live) struct State {
    pub(super) records: Vec<Option<Record>>,
    pub(super) free: Vec<Id>,
    pub(super) kinds: Vec<GroupKind>,
    pub(super) kind_ids: HashMap<GroupKind, KindId>,
    pub(super) texts: HashSet<Arc<str>>,
    pub(super) tables: BTreeMap<KindId, Table>,
    pub(super) by_uid: HashMap<Uid, Id>,
    pub(super) children: HashMap<Uid, Vec<Id>>,
    pub(super) marked: HashMap<Arc<str>, Vec<Id>>,
    pub(super) referrers: HashMap<Address, Vec<Id>>,
    pub(super) wanted: HashMap<Address, Vec<Arc<str>>>,
    pub(super) wanted_by: HashMap<Arc<str>, Vec<Address>>,
}

/// The objects of one kind.
pub(in crate::live) struct Table {
    pub(in crate::live) resource: Resource,
    pub(in crate::live) names: HashMap<(Option<Arc<str>>, Arc<str>), Id>,
    pub(in crate::live) samples: Samples,
    pub(in crate::live) scopes: Vec<Scope>,
}

/// What one watch covers: all of a kind, or its objects in one namespace.
#[derive(Debug, Default)]
pub(in crate::live) struct Scope {
    pub(in crate::live) namespace: Option<String>,
    /// All changes up to this resource version are in the store.
    pub(in crate::live) position: u64,
    pub(in crate::live) round: u32,
    pub(in crate::live) listed: bool,
    /// The last error, if the watch failed.
    pub(in crate::live) trouble: Option<String>,
    /// The server is unreachable or rejects the credentials: the objects may be out of date.
    pub(in crate::live) lost: bool,
    /// plumb has no permission to list it, and the settings say to skip it.
    pub(in crate::live) skipped: bool,
    pub(in crate::live) lists: Lists,
}

/// The lists of one watch.
#[derive(Debug, Default)]
pub(in crate::live) struct Lists {
    /// Asks the watch to list again.
    pub(in crate::live) again: Arc<Notify>,
    /// True until the list ends that was asked for.
    pub(in crate::live) is_asked: bool,
    /// How many have ended.
    pub(in crate::live) n_ended: u32,
    /// When the last one began.
    pub(in crate::live) began: Option<Instant>,
}

/// The state of an object from a watch event or a write.
pub(in crate::live) struct Seen {
    pub(in crate::live) address: Address,
    pub(in crate::live) uid: Uid,
    pub(in crate::live) version: u64,
    pub(in crate::live) created: i64,
    pub(in crate::live) terminating: bool,
    pub(in crate::live) may_be_edited: bool,
    pub(in crate::live) mark: Option<Arc<str>>,
    pub(in crate::live) parents: Box<[Uid]>,
    pub(in crate::live) refs: Box<[Address]>,
    pub(in crate::live) images: Box<[Arc<str>]>,
    pub(in crate::live) body: Option<PackedObject>,
}

impl State {
    /// One copy of each text that many objects share.
    pub(in crate::live) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        // Unused texts are removed when the set would have to grow. If few were removed, it grows now;
        // otherwise each further text would cost another search.
        if self.texts.len() == self.texts.capacity() {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.texts.reserve(self.texts.len() / 2);
        }
        let fresh: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&fresh));
        fresh
    }

    pub(in crate::live) fn kind_id(&mut self, kind: &GroupKind) -> KindId {
        if let Some(id) = self.kind_ids.get(kind) {
            return *id;
        }
        let id = KindId::try_from(self.kinds.len()).unwrap_or(KindId::MAX);
        self.kinds.push(kind.clone());
        self.kind_ids.insert(kind.clone(), id);
        id
    }

    /// Every kind that has an id, in the order of the ids.
    pub(in crate::live) fn kind_names(&self) -> &[GroupKind] {
        &self.kinds
    }

    /// The address of a key, interned, to store it.
    pub(in crate::live) fn address(&mut self, key: &ObjectKey) -> Address {
        let kind = self.kind_id(&key.group_kind());
        let namespace = key.namespace.as_deref().map(|namespace| self.intern(namespace));
        Address { kind, namespace, name: self.intern(&key.name) }
    }

    /// The address of a key, for a lookup.
    pub(super) fn find_address(&self, key: &ObjectKey) -> Option<Address> {
        let kind = *self.kind_ids.get(&key.group_kind())?;
        Some(Address {
            kind,
            namespace: key.namespace.as_deref().map(Into::into),
            name: key.name.as_str().into(),
        })
    }

    pub(in crate::live) fn key(&self, address: &Address) -> ObjectKey {
        let (group, kind) = usize::try_from(address.kind)
            .ok()
            .and_then(|at| self.kinds.get(at))
            .map(|kind| (kind.group.clone(), kind.kind.clone()))
            .unwrap_or_default();
        ObjectKey::new(group, kind, address.namespace.as_deref().map(str::to_owned), address.name.to_string())
    }

    pub(super) fn at(id: Id) -> usize {
        usize::try_from(id).unwrap_or(usize::MAX)
    }

    pub(in crate::live) fn record(&self, id: Id) -> Option<&Record> {
        self.records.get(Self::at(id))?.as_ref()
    }

    pub(super) fn record_mut(&mut self, id: Id) -> Option<&mut Record> {
        self.records.get_mut(Self::at(id))?.as_mut()
    }

    pub(in crate::live) fn find(&self, address: &Address) -> Option<Id> {
        let table = self.tables.get(&address.kind)?;
        table.names.get(&(address.namespace.clone(), Arc::clone(&address.name))).copied()
    }

    pub(in crate::live) fn find_key(&self, key: &ObjectKey) -> Option<Id> {
        self.find(&self.find_address(key)?)
    }
}
