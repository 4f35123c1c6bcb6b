//! Inserts and removes objects. Every change of a record goes through here, which keeps the indices
//! consistent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plumb_core::object::Manifest;

use super::super::record::{Address, Change, KindId, Origin, Record, Touched, Uid};
use super::data::{Id, Scope, Seen, State};

/// The round of objects that no list contained. Rounds are counted from one.
const NO_ROUND: u32 = 0;

impl State {
    /// Stores the state of an object from a watch event or a write. `None` if nothing changed.
    ///
    /// Resource versions of one kind are numbers that grow with every write (Kubernetes 1.35 guarantees it,
    /// and every release on etcd did it), so a state older than the stored one is late, not new.
    ///
    /// `round` is that of the list that contains the object. The answer to a write has none: if the present
    /// list ends without the object and is newer, the object was deleted.
    pub(in crate::live) fn put(&mut self, seen: Seen, round: Option<u32>, origin: Origin) -> Option<Change> {
        let Some(id) = self.find(&seen.address) else {
            return Some(self.insert(seen, round.unwrap_or(NO_ROUND), origin));
        };
        let mut touched = self.touched(id);
        let record = self.record_mut(id)?;
        if let Some(round) = round {
            record.round = round;
        }
        if seen.version != 0 && seen.version <= record.version && seen.uid == record.uid {
            if seen.version == record.version && record.body.is_none() {
                record.body = seen.body;
            }
            return None;
        }
        if seen.version != 0 && seen.version < record.version {
            return None;
        }
        self.unindex(id);
        let record = self.record_mut(id)?;
        record.uid = seen.uid;
        record.version = seen.version;
        record.created = seen.created;
        record.terminating = seen.terminating;
        record.may_be_edited = seen.may_be_edited;
        record.mark = seen.mark;
        record.parents = seen.parents;
        record.refs = seen.refs;
        record.images = seen.images;
        record.body = seen.body;
        self.index(id);
        touched.extend(self.touched(id));
        Some(self.change(id, false, origin, touched))
    }

    /// Stores the server's answer to a request of plumb, in the version of the request. `None` if nothing
    /// changed, or if the store does not hold the object.
    ///
    /// The check and the write happen under one lock: otherwise an answer could bring back an object that the
    /// watch has reported as deleted in between, and no event would ever remove it again.
    pub(in crate::live) fn put_answer(
        &mut self,
        seen: Seen,
        version: &str,
        origin: Origin,
    ) -> Option<Change> {
        let table = self.tables.get(&seen.address.kind)?;
        // In another version than the watched one it would be compared with the wrong schema.
        if table.resource.gvk.version != version {
            return None;
        }
        let namespace = seen.address.namespace.as_deref();
        let is_covered =
            |scope: &&Scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace;
        let scope = table.scopes.iter().find(is_covered)?;
        // The watch has passed this state: if the store does not have the object, it was deleted since.
        if seen.version <= scope.position && self.find(&seen.address).is_none() {
            return None;
        }
        self.put(seen, None, origin)
    }

    fn insert(&mut self, seen: Seen, round: u32, origin: Origin) -> Change {
        let record = Record {
            address: seen.address,
            uid: seen.uid,
            version: seen.version,
            round,
            created: seen.created,
            terminating: seen.terminating,
            may_be_edited: seen.may_be_edited,
            mark: seen.mark,
            parents: seen.parents,
            refs: seen.refs,
            images: seen.images,
            body: seen.body,
        };
        let name = (record.address.namespace.clone(), Arc::clone(&record.address.name));
        let kind = record.address.kind;
        let id = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            Id::try_from(self.records.len() - 1).unwrap_or(Id::MAX)
        });
        if let Some(slot) = self.records.get_mut(Self::at(id)) {
            *slot = Some(record);
        }
        if let Some(table) = self.tables.get_mut(&kind) {
            table.names.insert(name, id);
        }
        self.index(id);
        let touched = self.touched(id);
        self.change(id, false, origin, touched)
    }

    /// Removes an object.
    pub(in crate::live) fn remove(&mut self, id: Id) -> Option<Change> {
        let touched = self.touched(id);
        let change = self.record(id).map(|_| self.change(id, true, Origin::Watched, touched))?;
        self.unindex(id);
        let record = self.records.get_mut(Self::at(id))?.take()?;
        self.free.push(id);
        if let Some(table) = self.tables.get_mut(&record.address.kind) {
            table.names.remove(&(record.address.namespace, record.address.name));
        }
        Some(change)
    }

    fn change(&self, id: Id, gone: bool, origin: Origin, touched: BTreeSet<Touched>) -> Change {
        let touched: Vec<Touched> = touched.into_iter().collect();
        let has_audience = !touched.is_empty();
        match self.record(id) {
            Some(record) => Change {
                key: self.key(&record.address),
                uid: record.uid.clone(),
                resource_version: record.version,
                gone,
                origin,
                last: if gone && has_audience { Self::last_state(record) } else { None },
                touched,
            },
            None => Change {
                key: self.key(&Address { kind: KindId::MAX, namespace: None, name: "".into() }),
                uid: Uid::new(""),
                resource_version: 0,
                gone,
                origin,
                last: None,
                touched,
            },
        }
    }

    fn last_state(record: &Record) -> Option<Arc<Manifest>> {
        record.body.as_ref()?.read().map(Arc::new)
    }

    fn index(&mut self, id: Id) {
        let Some(record) = self.records.get(Self::at(id)).and_then(Option::as_ref) else { return };
        self.by_uid.insert(record.uid.clone(), id);
        for parent in &record.parents {
            self.children.entry(parent.clone()).or_default().push(id);
        }
        if let Some(mark) = &record.mark {
            self.marked.entry(Arc::clone(mark)).or_default().push(id);
        }
        for target in &record.refs {
            self.referrers.entry(target.clone()).or_default().push(id);
        }
    }

    fn unindex(&mut self, id: Id) {
        let Some(record) = self.records.get(Self::at(id)).and_then(Option::as_ref) else { return };
        if self.by_uid.get(&record.uid) == Some(&id) {
            self.by_uid.remove(&record.uid);
        }
        for parent in &record.parents {
            take_out(&mut self.children, parent, id);
        }
        if let Some(mark) = &record.mark {
            take_out(&mut self.marked, mark, id);
        }
        for target in &record.refs {
            take_out(&mut self.referrers, target, id);
        }
    }
}

fn take_out<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<Id>>, key: &K, id: Id) {
    let Some(ids) = map.get_mut(key) else { return };
    if let Some(at) = ids.iter().position(|known| *known == id) {
        ids.swap_remove(at);
    }
    if ids.is_empty() {
        map.remove(key);
    }
}
