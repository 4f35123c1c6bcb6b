//! Which kinds are watched, and the position of each watch.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use plumb_core::object::{GroupKind, ObjectKey};
use tokio::time::Instant;

use super::super::record::{Change, KindId};
use super::data::{Id, Scope, State, Table};
use crate::catalog::Resource;
use crate::packed::Samples;

/// A kind whose last list began less than this ago is not listed again.
const LISTED_A_MOMENT_AGO: Duration = Duration::from_secs(5);

impl State {
    /// Adds the table of a kind, or changes its version.
    pub(in crate::live) fn open_table(
        &mut self,
        resource: &Resource,
        namespaces: &[Option<String>],
    ) -> KindId {
        let id = self.kind_id(&resource.gvk.group_kind());
        let scopes = || {
            let scope =
                |namespace: &Option<String>| Scope { namespace: namespace.clone(), ..Scope::default() };
            namespaces.iter().map(scope).collect()
        };
        if let Some(table) = self.tables.get_mut(&id) {
            // In another version the same state of an object looks different: all of them are read again.
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

    /// Removes a kind that is no longer served, with its objects.
    pub(in crate::live) fn close_table(&mut self, kind: KindId) -> Vec<Change> {
        let Some(table) = self.tables.get(&kind) else { return Vec::new() };
        let ids: Vec<Id> = table.names.values().copied().collect();
        let changes = ids.into_iter().filter_map(|id| self.remove(id)).collect();
        self.tables.remove(&kind);
        changes
    }

    pub(in crate::live) fn table(&self, kind: KindId) -> Option<&Table> {
        self.tables.get(&kind)
    }

    pub(in crate::live) fn table_mut(&mut self, kind: KindId) -> Option<&mut Table> {
        self.tables.get_mut(&kind)
    }

    pub(in crate::live) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    pub(in crate::live) fn table_of(&self, kind: &GroupKind) -> Option<(KindId, &Table)> {
        let id = *self.kind_ids.get(kind)?;
        Some((id, self.tables.get(&id)?))
    }

    pub(in crate::live) fn scope_mut(&mut self, kind: KindId, scope: usize) -> Option<&mut Scope> {
        self.tables.get_mut(&kind)?.scopes.get_mut(scope)
    }

    /// The kinds whose first list is not complete, with the last error if there was one.
    pub(in crate::live) fn unlisted(&self) -> Vec<(GroupKind, Option<String>)> {
        let waiting = |table: &Table| {
            let scope = table.scopes.iter().find(|scope| !scope.listed && !scope.skipped)?;
            Some((table.resource.gvk.group_kind(), scope.trouble.clone()))
        };
        self.tables.values().filter_map(waiting).collect()
    }

    /// The error of a watch that cannot reach the server, if there is one.
    pub(in crate::live) fn lost(&self) -> Option<&str> {
        let scopes = self.tables.values().flat_map(|table| &table.scopes);
        scopes.filter(|scope| scope.lost).map(|scope| scope.trouble.as_deref().unwrap_or_default()).next()
    }

    /// Asks the watches of these kinds to list again, but for those whose last list began a moment ago. Returns the lists
    /// to wait for: the kind, the number of its scope, and how many lists have ended so far.
    pub(in crate::live) fn list_again(
        &mut self,
        kinds: &BTreeSet<GroupKind>,
        now: Instant,
    ) -> Vec<(KindId, usize, u32)> {
        let ids: Vec<KindId> = kinds.iter().filter_map(|kind| Some(self.table_of(kind)?.0)).collect();
        let mut asked = Vec::new();
        for id in ids {
            let scopes = self.tables.get_mut(&id).map(|table| &mut table.scopes);
            for (number, scope) in scopes.into_iter().flatten().enumerate() {
                let lists = &mut scope.lists;
                let began = lists.began.filter(|_| scope.listed);
                let is_due = began.is_some_and(|began| now.duration_since(began) >= LISTED_A_MOMENT_AGO);
                if is_due && !lists.is_asked {
                    lists.is_asked = true;
                    lists.again.notify_one();
                }
                if lists.is_asked {
                    asked.push((id, number, lists.n_ended));
                }
            }
        }
        asked
    }

    /// True if these lists have ended, or their kinds are no longer watched.
    pub(in crate::live) fn have_listed(&self, asked: &[(KindId, usize, u32)]) -> bool {
        asked.iter().all(|(kind, number, before)| {
            let scope = self.tables.get(kind).and_then(|table| table.scopes.get(*number));
            scope.is_none_or(|scope| scope.lists.n_ended != *before)
        })
    }

    /// True if a complete list covers this key: an object that is not in the store is then known to be
    /// missing.
    pub(in crate::live) fn covers(&self, key: &ObjectKey) -> bool {
        let Some((_, table)) = self.table_of(&key.group_kind()) else { return false };
        table
            .scopes
            .iter()
            .any(|scope| scope.listed && (scope.namespace.is_none() || scope.namespace == key.namespace))
    }
}
