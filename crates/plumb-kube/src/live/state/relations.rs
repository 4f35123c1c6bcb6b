//! Relations of objects: owners, children, references, and the apps that track or want them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use plumb_core::object::{GroupKind, ObjectKey};

use super::super::record::{Address, Node, Record, Role, Touched, Uid};
use super::super::refs::{CLAIMS_OF_SET, claim_set};
use super::data::{Id, State};

/// How far up a chain of owners is followed. Real chains have four steps; a cycle has no end.
const DEEPEST: usize = 16;

impl State {
    /// True if an app wants an object of this address kept whole.
    pub(in crate::live) fn is_wanted(&self, address: &Address) -> bool {
        self.wanted.contains_key(address)
    }

    /// Replaces the addresses that an app wants besides those it tracks.
    pub(in crate::live) fn want(&mut self, instance: &Arc<str>, addresses: Vec<Address>) {
        for old in self.wanted_by.remove(instance).unwrap_or_default() {
            if let Some(instances) = self.wanted.get_mut(&old) {
                instances.retain(|known| known != instance);
                if instances.is_empty() {
                    self.wanted.remove(&old);
                }
            }
        }
        if addresses.is_empty() {
            return;
        }
        for address in &addresses {
            self.wanted.entry(address.clone()).or_default().push(Arc::clone(instance));
        }
        self.wanted_by.insert(Arc::clone(instance), addresses);
    }

    /// The owners of an object, real or inferred.
    pub(in crate::live) fn parents(&self, record: &Record) -> Vec<Uid> {
        if !record.parents.is_empty() {
            return record.parents.to_vec();
        }
        self.inferred_parent(record).into_iter().collect()
    }

    /// Kubernetes sets no owner reference in a token Secret, a claim of a `StatefulSet` or an `Endpoints`
    /// object.
    fn inferred_parent(&self, record: &Record) -> Option<Uid> {
        let kind = self.kinds.get(Self::at(record.address.kind))?;
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "PersistentVolumeClaim") => {
                let set = claim_set(&record.address.name)?;
                let address = Address {
                    kind: *self.kind_ids.get(&GroupKind::new("", CLAIMS_OF_SET))?,
                    namespace: record.address.namespace.clone(),
                    name: set.into(),
                };
                let owner = self.record(*self.referrers.get(&address)?.first()?)?;
                Some(owner.uid.clone())
            }
            ("", "Secret") => {
                // Only a token Secret refers to a ServiceAccount.
                let account = self.record(self.find(record.refs.first()?)?)?;
                Some(account.uid.clone())
            }
            ("", "Endpoints") => {
                let kind = *self.kind_ids.get(&GroupKind::new("", "Service"))?;
                let service = self.record(self.find(&Address { kind, ..record.address.clone() })?)?;
                Some(service.uid.clone())
            }
            _ => None,
        }
    }

    /// The app that tracks an object: the object has the app's mark and no owner that copied the mark to it.
    pub(in crate::live) fn owner(&self, record: &Record) -> Option<Arc<str>> {
        let mark = record.mark.as_ref()?;
        (record.parents.is_empty() && self.inferred_parent(record).is_none()).then(|| Arc::clone(mark))
    }

    /// The apps that a change of this object concerns.
    pub(super) fn touched(&self, id: Id) -> BTreeSet<Touched> {
        let mut touched = BTreeSet::new();
        let Some(record) = self.record(id) else { return touched };
        for instance in self.wanted.get(&record.address).into_iter().flatten() {
            touched.insert(Touched { instance: Arc::clone(instance), role: Role::Wanted });
        }
        let mut current = record;
        for depth in 0..DEEPEST {
            if let Some(instance) = self.owner(current) {
                let role = if depth == 0 { Role::Tracked } else { Role::Child };
                touched.insert(Touched { instance, role });
                break;
            }
            let parent = self.parents(current).into_iter().find_map(|uid| self.by_uid.get(&uid));
            match parent.and_then(|id| self.record(*id)) {
                Some(parent) => current = parent,
                None => break,
            }
        }
        touched
    }

    /// The objects that an app tracks.
    pub(in crate::live) fn tracked(&self, instance: &str) -> Vec<Id> {
        let Some(ids) = self.marked.get(instance) else { return Vec::new() };
        let is_owner = |id: &Id| self.record(*id).is_some_and(|record| self.owner(record).is_some());
        ids.iter().copied().filter(is_owner).collect()
    }

    /// The apps that track an object.
    pub(in crate::live) fn instances(&self) -> BTreeSet<Arc<str>> {
        self.marked.keys().cloned().collect()
    }

    pub(in crate::live) fn children(&self, uid: &Uid) -> Vec<Id> {
        let mut ids: Vec<Id> = self.children.get(uid).cloned().unwrap_or_default();
        if let Some(parent) = self.by_uid.get(uid).and_then(|id| self.record(*id)) {
            ids.extend(self.inferred_children(parent));
        }
        ids
    }

    fn inferred_children(&self, parent: &Record) -> Vec<Id> {
        let is_child = |id: &Id| {
            let child = self.record(*id);
            child.is_some_and(|child| {
                child.parents.is_empty() && self.inferred_parent(child).as_ref() == Some(&parent.uid)
            })
        };
        let Some(kind) = self.kinds.get(Self::at(parent.address.kind)) else { return Vec::new() };
        let candidates: Vec<Id> = match (kind.group.as_str(), kind.kind.as_str()) {
            ("apps", "StatefulSet") => {
                let claims = self.table_of(&GroupKind::new("", "PersistentVolumeClaim"));
                let names = claims.into_iter().flat_map(|(_, table)| &table.names);
                let here = names.filter(|((namespace, _), _)| *namespace == parent.address.namespace);
                here.map(|(_, id)| *id).collect()
            }
            ("", "ServiceAccount") => self.referrers.get(&parent.address).cloned().unwrap_or_default(),
            ("", "Service") => {
                let endpoints = self.kind_ids.get(&GroupKind::new("", "Endpoints"));
                let address = endpoints.map(|kind| Address { kind: *kind, ..parent.address.clone() });
                address.and_then(|address| self.find(&address)).into_iter().collect()
            }
            _ => Vec::new(),
        };
        candidates.into_iter().filter(is_child).collect()
    }

    /// These objects and all their descendants, each once.
    pub(in crate::live) fn tree(&self, roots: &[Id]) -> Vec<Id> {
        let mut found: Vec<Id> = Vec::new();
        let mut known: HashSet<Id> = HashSet::new();
        for root in roots {
            if known.insert(*root) {
                found.push(*root);
            }
        }
        let mut next = 0;
        while let Some(id) = found.get(next).copied() {
            next += 1;
            let Some(record) = self.record(id) else { continue };
            for child in self.children(&record.uid) {
                if known.insert(child) {
                    found.push(child);
                }
            }
        }
        found
    }

    /// The objects that refer to an address.
    pub(in crate::live) fn referrers(&self, key: &ObjectKey) -> Vec<Id> {
        let Some(address) = self.find_address(key) else { return Vec::new() };
        self.referrers.get(&address).cloned().unwrap_or_default()
    }

    pub(in crate::live) fn node(&self, id: Id) -> Option<Node> {
        let record = self.record(id)?;
        let version = self.tables.get(&record.address.kind).map(|table| table.resource.gvk.version.clone());
        Some(Node {
            key: self.key(&record.address),
            version: version.unwrap_or_default(),
            uid: record.uid.clone(),
            resource_version: record.version.to_string(),
            parents: self.parents(record),
            created: record.created,
            terminating: record.terminating,
            may_be_edited: record.may_be_edited,
            owner: self.owner(record),
            images: record.images.to_vec(),
        })
    }

    pub(in crate::live) fn by_uid(&self, uid: &Uid) -> Option<Id> {
        self.by_uid.get(uid).copied()
    }

    /// All objects, in no order.
    pub(in crate::live) fn all(&self) -> impl Iterator<Item = (Id, &Record)> {
        let numbered = self.records.iter().enumerate();
        numbered.filter_map(|(at, record)| Some((Id::try_from(at).ok()?, record.as_ref()?)))
    }

    /// Objects, objects kept whole, and the bytes of those.
    pub(in crate::live) fn size(&self) -> (usize, usize, usize) {
        let whole = self.all().filter_map(|(_, record)| record.body.as_ref());
        let (n_whole, bytes) = whole.fold((0, 0), |(n, bytes), body| (n + 1, bytes + body.size()));
        (self.all().count(), n_whole, bytes)
    }
}
