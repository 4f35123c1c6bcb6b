//! All objects with their indices. Every change goes through [`State::put`] and [`State::remove`], which keep
//! the indices whole and say what changed. There is no I/O here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use plumb_core::object::{GroupKind, Manifest, ObjectKey};

use super::pack::{Packed, Samples};
use super::record::{Address, Change, KindId, Node, Origin, Record, Role, Touched, Uid};
use super::refs::{CLAIMS_OF_SET, claim_set};
use crate::discovery::Resource;

/// Position of a record. Free ones are used again.
pub(super) type Id = u32;

/// The round of objects that no list has shown. Rounds are counted from one.
const NO_ROUND: u32 = 0;

/// How far up a chain of owners is followed. Chains in use have four steps; a circle has no end.
const DEEPEST: usize = 16;

#[derive(Default)]
pub(super) struct State {
    records: Vec<Option<Record>>,
    free: Vec<Id>,
    kinds: Vec<GroupKind>,
    kind_ids: HashMap<GroupKind, KindId>,
    texts: HashSet<Arc<str>>,
    tables: BTreeMap<KindId, Table>,
    by_uid: HashMap<Uid, Id>,
    children: HashMap<Uid, Vec<Id>>,
    marked: HashMap<Arc<str>, Vec<Id>>,
    referrers: HashMap<Address, Vec<Id>>,
    wanted: HashMap<Address, Vec<Arc<str>>>,
    wanted_by: HashMap<Arc<str>, Vec<Address>>,
}

/// The objects of one kind.
pub(super) struct Table {
    pub(super) resource: Resource,
    pub(super) names: HashMap<(Option<Arc<str>>, Arc<str>), Id>,
    pub(super) samples: Samples,
    pub(super) scopes: Vec<Scope>,
}

/// What one watch covers: all of a kind, or its objects in one namespace.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) namespace: Option<String>,
    /// All changes up to here are in the store.
    pub(super) position: u64,
    pub(super) round: u32,
    pub(super) listed: bool,
    /// Why it does not get on, if it does not.
    pub(super) trouble: Option<String>,
    /// The server is away, or does not know us any more: what is here may be old.
    pub(super) lost: bool,
    /// We may not list it, and the settings say to do without.
    pub(super) skipped: bool,
}

/// What a watch or a write says about an object.
pub(super) struct Seen {
    pub(super) address: Address,
    pub(super) uid: Uid,
    pub(super) version: u64,
    pub(super) created: i64,
    pub(super) terminating: bool,
    pub(super) mark: Option<Arc<str>>,
    pub(super) parents: Box<[Uid]>,
    pub(super) refs: Box<[Address]>,
    pub(super) images: Box<[Arc<str>]>,
    pub(super) body: Option<Packed>,
}

impl State {
    // --- names -------------------------------------------------------------------------------------------

    /// One copy of each text that many objects share.
    pub(super) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        // Texts that nobody uses any more go when the set would have to grow. If few went, it grows now, or
        // the next texts would all pay for another search.
        if self.texts.len() == self.texts.capacity() {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.texts.reserve(self.texts.len() / 2);
        }
        let fresh: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&fresh));
        fresh
    }

    pub(super) fn kind_id(&mut self, kind: &GroupKind) -> KindId {
        if let Some(id) = self.kind_ids.get(kind) {
            return *id;
        }
        let id = KindId::try_from(self.kinds.len()).unwrap_or(KindId::MAX);
        self.kinds.push(kind.clone());
        self.kind_ids.insert(kind.clone(), id);
        id
    }

    /// The address of a key, for putting it somewhere.
    pub(super) fn address(&mut self, key: &ObjectKey) -> Address {
        let kind = self.kind_id(&key.group_kind());
        let namespace = key.namespace.as_deref().map(|namespace| self.intern(namespace));
        Address { kind, namespace, name: self.intern(&key.name) }
    }

    /// The address of a key, for looking it up.
    fn find_address(&self, key: &ObjectKey) -> Option<Address> {
        let kind = *self.kind_ids.get(&key.group_kind())?;
        Some(Address {
            kind,
            namespace: key.namespace.as_deref().map(Into::into),
            name: key.name.as_str().into(),
        })
    }

    pub(super) fn key(&self, address: &Address) -> ObjectKey {
        let (group, kind) = usize::try_from(address.kind)
            .ok()
            .and_then(|at| self.kinds.get(at))
            .map(|kind| (kind.group.clone(), kind.kind.clone()))
            .unwrap_or_default();
        ObjectKey::new(group, kind, address.namespace.as_deref().map(str::to_owned), address.name.to_string())
    }

    // --- kinds -------------------------------------------------------------------------------------------

    /// Makes room for a kind, or moves it to another version.
    pub(super) fn open_table(&mut self, resource: &Resource, namespaces: &[Option<String>]) -> KindId {
        let id = self.kind_id(&resource.gvk.group_kind());
        let scopes = || {
            let scope =
                |namespace: &Option<String>| Scope { namespace: namespace.clone(), ..Scope::default() };
            namespaces.iter().map(scope).collect()
        };
        if let Some(table) = self.tables.get_mut(&id) {
            // In another version the same state of an object looks different: all of them are taken anew.
            table.resource = resource.clone();
            table.scopes = scopes();
            table.samples = Samples::default();
            let ids: Vec<Id> = table.names.values().copied().collect();
            for id in ids {
                if let Some(record) = self.record_mut(id) {
                    record.version = 0;
                    record.body = None;
                }
            }
        } else {
            let table = Table {
                resource: resource.clone(),
                names: HashMap::new(),
                samples: Samples::default(),
                scopes: scopes(),
            };
            self.tables.insert(id, table);
        }
        id
    }

    /// Forgets a kind that is not served any more, with its objects.
    pub(super) fn close_table(&mut self, kind: KindId) -> Vec<Change> {
        let Some(table) = self.tables.get(&kind) else { return Vec::new() };
        let ids: Vec<Id> = table.names.values().copied().collect();
        let changes = ids.into_iter().filter_map(|id| self.remove(id)).collect();
        self.tables.remove(&kind);
        changes
    }

    pub(super) fn table(&self, kind: KindId) -> Option<&Table> {
        self.tables.get(&kind)
    }

    pub(super) fn table_mut(&mut self, kind: KindId) -> Option<&mut Table> {
        self.tables.get_mut(&kind)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    pub(super) fn table_of(&self, kind: &GroupKind) -> Option<(KindId, &Table)> {
        let id = *self.kind_ids.get(kind)?;
        Some((id, self.tables.get(&id)?))
    }

    pub(super) fn scope_mut(&mut self, kind: KindId, scope: usize) -> Option<&mut Scope> {
        self.tables.get_mut(&kind)?.scopes.get_mut(scope)
    }

    /// The kinds whose objects are not all known, with what is in the way.
    pub(super) fn unlisted(&self) -> Vec<(GroupKind, Option<String>)> {
        let waiting = |table: &Table| {
            let scope = table.scopes.iter().find(|scope| !scope.listed && !scope.skipped)?;
            Some((table.resource.gvk.group_kind(), scope.trouble.clone()))
        };
        self.tables.values().filter_map(waiting).collect()
    }

    /// What keeps a watch from the server, if one is kept from it.
    pub(super) fn lost(&self) -> Option<&str> {
        let scopes = self.tables.values().flat_map(|table| &table.scopes);
        scopes.filter(|scope| scope.lost).map(|scope| scope.trouble.as_deref().unwrap_or_default()).next()
    }

    /// Is an object of this key, if it is not here, known to be absent?
    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        let Some((_, table)) = self.table_of(&key.group_kind()) else { return false };
        table
            .scopes
            .iter()
            .any(|scope| scope.listed && (scope.namespace.is_none() || scope.namespace == key.namespace))
    }

    // --- objects -----------------------------------------------------------------------------------------

    fn at(id: Id) -> usize {
        usize::try_from(id).unwrap_or(usize::MAX)
    }

    pub(super) fn record(&self, id: Id) -> Option<&Record> {
        self.records.get(Self::at(id))?.as_ref()
    }

    fn record_mut(&mut self, id: Id) -> Option<&mut Record> {
        self.records.get_mut(Self::at(id))?.as_mut()
    }

    pub(super) fn find(&self, address: &Address) -> Option<Id> {
        let table = self.tables.get(&address.kind)?;
        table.names.get(&(address.namespace.clone(), Arc::clone(&address.name))).copied()
    }

    pub(super) fn find_key(&self, key: &ObjectKey) -> Option<Id> {
        self.find(&self.find_address(key)?)
    }

    /// Takes in what a watch or a write says about an object. `None` if it is no news.
    ///
    /// Resource versions of one kind are numbers that grow with every write (Kubernetes 1.35 promises it, and
    /// every release on etcd did it), so what is older than what is known is late, not new.
    ///
    /// `round` is that of the list that shows the object. What no list showed (a write's answer) has none: if
    /// the list in progress ends without it and is newer, it is gone again.
    pub(super) fn put(&mut self, seen: Seen, round: Option<u32>, origin: Origin) -> Option<Change> {
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
        record.mark = seen.mark;
        record.parents = seen.parents;
        record.refs = seen.refs;
        record.images = seen.images;
        record.body = seen.body;
        self.index(id);
        touched.extend(self.touched(id));
        Some(self.change(id, false, origin, touched))
    }

    /// Takes in the server's answer to a request of ours, in the version that was asked for. `None` if it is no
    /// news, or not for the store.
    ///
    /// All of it under one lock: an answer that was found to be new and put in later would bring back what the
    /// watch has seen deleted in between, and no event would ever take it out again.
    pub(super) fn put_answer(&mut self, seen: Seen, version: &str, origin: Origin) -> Option<Change> {
        let table = self.tables.get(&seen.address.kind)?;
        // In another version than the watched one it would be compared with the wrong schema.
        if table.resource.gvk.version != version {
            return None;
        }
        let namespace = seen.address.namespace.as_deref();
        let is_covered =
            |scope: &&Scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace;
        let scope = table.scopes.iter().find(is_covered)?;
        // The watch has passed this state: if the object is not there, it was deleted since.
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

    /// Takes an object out.
    pub(super) fn remove(&mut self, id: Id) -> Option<Change> {
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

    // --- wanted ------------------------------------------------------------------------------------------

    /// Does an app want an object of this address kept whole?
    pub(super) fn is_wanted(&self, address: &Address) -> bool {
        self.wanted.contains_key(address)
    }

    /// Replaces what an app wants beyond what it tracks.
    pub(super) fn want(&mut self, instance: &Arc<str>, addresses: Vec<Address>) {
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

    // --- questions ---------------------------------------------------------------------------------------

    /// The owners of an object, real or inferred.
    pub(super) fn parents(&self, record: &Record) -> Vec<Uid> {
        if !record.parents.is_empty() {
            return record.parents.to_vec();
        }
        self.inferred_parent(record).into_iter().collect()
    }

    /// Kubernetes does not say whose a token Secret, a claim of a `StatefulSet` or an `Endpoints` object is.
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

    /// The app that tracks an object: it carries the app's mark and has no owner that copied it there.
    pub(super) fn owner(&self, record: &Record) -> Option<Arc<str>> {
        let mark = record.mark.as_ref()?;
        (record.parents.is_empty() && self.inferred_parent(record).is_none()).then(|| Arc::clone(mark))
    }

    /// The apps that a change of this object concerns.
    fn touched(&self, id: Id) -> BTreeSet<Touched> {
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
    pub(super) fn tracked(&self, instance: &str) -> Vec<Id> {
        let Some(ids) = self.marked.get(instance) else { return Vec::new() };
        let is_owner = |id: &Id| self.record(*id).is_some_and(|record| self.owner(record).is_some());
        ids.iter().copied().filter(is_owner).collect()
    }

    /// The apps that track anything.
    pub(super) fn instances(&self) -> BTreeSet<Arc<str>> {
        self.marked.keys().cloned().collect()
    }

    pub(super) fn children(&self, uid: &Uid) -> Vec<Id> {
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

    /// Everything that descends from these objects, themselves first, each once.
    pub(super) fn tree(&self, roots: &[Id]) -> Vec<Id> {
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
    pub(super) fn referrers(&self, key: &ObjectKey) -> Vec<Id> {
        let Some(address) = self.find_address(key) else { return Vec::new() };
        self.referrers.get(&address).cloned().unwrap_or_default()
    }

    pub(super) fn node(&self, id: Id) -> Option<Node> {
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
            owner: self.owner(record),
            images: record.images.to_vec(),
        })
    }

    pub(super) fn by_uid(&self, uid: &Uid) -> Option<Id> {
        self.by_uid.get(uid).copied()
    }

    /// All objects, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Id, &Record)> {
        let numbered = self.records.iter().enumerate();
        numbered.filter_map(|(at, record)| Some((Id::try_from(at).ok()?, record.as_ref()?)))
    }

    /// Objects, objects kept whole, and the bytes of those.
    pub(super) fn size(&self) -> (usize, usize, usize) {
        let whole = self.all().filter_map(|(_, record)| record.body.as_ref());
        let (n_whole, bytes) = whole.fold((0, 0), |(n, bytes), body| (n + 1, bytes + body.size()));
        (self.all().count(), n_whole, bytes)
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

#[cfg(test)]
mod tests;
