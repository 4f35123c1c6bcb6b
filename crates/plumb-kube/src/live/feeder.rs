//! Puts the events of watches into the store.

use std::sync::Arc;

use plumb_core::object::GroupKind;
use plumb_core::secrets::may_be_edited_by_hand;
use tokio::time::Instant;

use super::core::Core;
use super::record::{Address, KindId, Origin, Uid};
use super::refs;
use super::rewind::{Answered, Told, contradiction};
use super::state::{Seen, State};
use crate::error::ApiError;
use crate::feed::{FeedEvent, Head};
use crate::packed::pack;

/// The receiving end of one watch.
pub(super) struct Feeder {
    core: Arc<Core>,
    kind: GroupKind,
    id: KindId,
    scope: usize,
    round: u32,
    listing: bool,
    /// The position before the list began.
    told: u64,
    /// The version of an object in the store, and the older one that the list has. Of all such objects the one whose
    /// version in the store is the oldest.
    older: Option<(u64, u64)>,
    /// The server was unreachable: it may return as another version, with other kinds.
    was_unreachable: bool,
}

impl Feeder {
    pub(super) fn new(core: Arc<Core>, kind: GroupKind, id: KindId, scope: usize) -> Self {
        Self { core, kind, id, scope, round: 0, listing: false, told: 0, older: None, was_unreachable: false }
    }

    pub(super) fn note(&mut self, event: &FeedEvent<'_>) {
        match event {
            FeedEvent::Opened => self.opened(),
            FeedEvent::ListBegins => self.begin_list(),
            FeedEvent::Seen { raw, head } => self.seen(raw, head),
            FeedEvent::Gone { head } => self.gone(head),
            FeedEvent::Position(version) => self.reached(number(version)),
            FeedEvent::ListEnds(version) => self.end_list(number(version)),
            FeedEvent::Trouble(error) => self.trouble(error),
        }
    }

    fn opened(&mut self) {
        if std::mem::take(&mut self.was_unreachable) {
            self.core.look_again.notify_one();
            self.core.came_back.notify_one();
            // If one watch reaches the server, the others can too.
            self.core.client.retry_watches();
        }
        let was_lost = {
            let mut state = self.core.state_mut();
            state.scope_mut(self.id, self.scope).is_some_and(|scope| {
                if scope.listed {
                    scope.trouble = None;
                }
                std::mem::take(&mut scope.lost)
            })
        };
        if was_lost {
            self.core.publish_lost();
        }
    }

    fn begin_list(&mut self) {
        self.listing = true;
        self.older = None;
        let mut state = self.core.state_mut();
        if let Some(scope) = state.scope_mut(self.id, self.scope) {
            scope.round += 1;
            scope.lists.began = Some(Instant::now());
            self.round = scope.round;
            self.told = scope.position;
        }
    }

    fn seen(&mut self, raw: &str, head: &Head<'_>) {
        let version = number(&head.metadata.resource_version);
        let (is_listing, mut older) = (self.listing, self.older);
        let change = ingest(&self.core, &self.kind, raw, head, |state, seen| {
            let known = is_listing.then(|| state.find(&seen.address)).flatten();
            if let Some(known) = known.and_then(|id| state.record(id)).filter(|known| version < known.version)
                && older.is_none_or(|(told, _)| known.version < told)
            {
                older = Some((known.version, version));
            }
            let change = state.put(seen, Some(self.round), Origin::Watched);
            if !self.listing
                && let Some(scope) = state.scope_mut(self.id, self.scope)
            {
                scope.position = scope.position.max(version);
            }
            change
        });
        self.older = older;
        if let Some(change) = change {
            self.core.publish(&change);
            self.look_again_if_kinds_changed();
        }
    }

    fn gone(&mut self, head: &Head<'_>) {
        let version = number(&head.metadata.resource_version);
        let change = {
            let mut state = self.core.state_mut();
            if let Some(scope) = state.scope_mut(self.id, self.scope) {
                scope.position = scope.position.max(version);
            }
            let address = address_of(&mut state, self.id, head);
            let uid = Uid::new(&head.metadata.uid);
            // Ignore the deletion of an object that was recreated since.
            let id = state.find(&address).filter(|id| {
                let record = state.record(*id);
                record.is_some_and(|record| record.uid == uid || record.version <= version)
            });
            id.and_then(|id| state.remove(id))
        };
        if let Some(change) = change {
            self.core.publish(&change);
            self.look_again_if_kinds_changed();
        }
    }

    fn reached(&self, version: u64) {
        let mut state = self.core.state_mut();
        if let Some(scope) = state.scope_mut(self.id, self.scope) {
            scope.position = scope.position.max(version);
        }
    }

    /// An object that is not in the list was deleted, unless it is newer than the list: then plumb wrote it a
    /// moment ago and the watch event is about to come.
    fn end_list(&mut self, version: u64) {
        self.listing = false;
        self.check_time(version);
        let round = self.round;
        let (changes, first) = {
            let mut state = self.core.state_mut();
            let namespace = state.scope_mut(self.id, self.scope).and_then(|scope| scope.namespace.clone());
            let missing: Vec<_> = match state.table(self.id) {
                Some(table) => {
                    let here = table.names.iter().filter(|((place, _), _)| {
                        namespace.is_none() || place.as_deref() == namespace.as_deref()
                    });
                    let is_missing = |id: &u32| {
                        let record = state.record(*id);
                        record.is_some_and(|record| record.round != round && record.version <= version)
                    };
                    here.map(|(_, id)| *id).filter(is_missing).collect()
                }
                None => Vec::new(),
            };
            let changes: Vec<_> = missing.into_iter().filter_map(|id| state.remove(id)).collect();
            let mut first = false;
            if let Some(scope) = state.scope_mut(self.id, self.scope) {
                first = !scope.listed;
                scope.listed = true;
                scope.trouble = None;
                scope.position = scope.position.max(version);
                scope.lists.n_ended = scope.lists.n_ended.wrapping_add(1);
                scope.lists.is_asked = false;
            }
            (changes, first)
        };
        for change in changes {
            self.core.publish(&change);
        }
        if first {
            self.core.publish_complete();
        }
        self.core.lists.send_modify(|n| *n = n.wrapping_add(1));
        // The first list may also contain CRDs that are newer than the catalog, or whose schema is not
        // published yet.
        self.look_again_if_kinds_changed();
    }

    /// A list that is older than what the server had told before, or that has an older state of an object, shows that the
    /// data of the server went back in time.
    fn check_time(&self, version: u64) {
        if !self.core.state().is_numbered(&self.kind) {
            return;
        }
        // A state that is newer than the list was written after it.
        let older = self.older.filter(|(told, _)| *told <= version);
        let told = Told { list: self.told, object: older.map_or(0, |(told, _)| told) };
        let answered = Answered { list: version, object: older.map(|(_, listed)| listed) };
        if let Some(evidence) = contradiction(told, answered) {
            self.core.publish_rewound(evidence);
        }
    }

    fn trouble(&mut self, error: &ApiError) {
        tracing::debug!(kind = %self.kind, %error, "a watch failed; it will be retried");
        if error.is_unavailable() {
            self.was_unreachable = true;
        }
        if error.is_not_found() {
            // The CRD of the kind may have been deleted.
            self.core.look_again.notify_one();
        }
        {
            let mut state = self.core.state_mut();
            if let Some(scope) = state.scope_mut(self.id, self.scope) {
                scope.trouble = Some(error.to_string());
                scope.lost = error.is_unavailable() || error.code() == Some(401);
                scope.skipped = error.is_forbidden() && self.core.options.skip_forbidden;
            }
        }
        self.core.publish_lost();
        self.core.publish_complete();
    }

    /// CRDs and API services bring new kinds.
    fn look_again_if_kinds_changed(&self) {
        let is_source_of_kinds = matches!(
            (self.kind.group.as_str(), self.kind.kind.as_str()),
            ("apiextensions.k8s.io", "CustomResourceDefinition") | ("apiregistration.k8s.io", "APIService")
        );
        if is_source_of_kinds && !self.listing {
            self.core.look_again.notify_one();
        }
    }
}

/// Reads an object, packs it if it is to be kept whole, and passes it to `put` under the store's lock.
pub(super) fn ingest<T>(
    core: &Core,
    kind: &GroupKind,
    raw: &str,
    head: &Head<'_>,
    put: impl FnOnce(&mut State, Seen) -> T,
) -> T {
    let has_parents = head.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty());
    let mark = (core.options.owner_of)(&head.marks());
    let is_pod = kind.group.is_empty() && kind.kind == "Pod";
    let is_secret = kind.group.is_empty() && kind.kind == "Secret";
    let parsed = refs::read(kind, raw);
    let references = parsed.as_ref().map(|object| refs::references(kind, object)).unwrap_or_default();
    let images = match &parsed {
        Some(object) if is_pod => refs::images(object),
        Some(_) | None => Vec::new(),
    };

    // Packing takes longer than everything else here, so it is done outside of the lock.
    let keep = (mark.is_some() && !has_parents) || core.options.keep_whole.contains(kind);
    let (keep, sample) = {
        let mut state = core.state_mut();
        let id = state.kind_id(kind);
        let address = address_of(&mut state, id, head);
        let keep = keep || state.is_wanted(&address);
        let sample = match state.table_mut(id) {
            Some(table) if keep => table.samples.newest(raw),
            Some(_) | None => None,
        };
        (keep, sample)
    };
    let body = keep.then(|| pack(raw, sample.as_ref()));

    let mut state = core.state_mut();
    let id = state.kind_id(kind);
    if let (Some(table), Some(body)) = (state.table_mut(id), &body) {
        table.samples.learn(raw, body);
    }
    let parents = head.metadata.owner_references.as_deref().unwrap_or_default();
    let seen = Seen {
        address: address_of(&mut state, id, head),
        uid: Uid::new(&head.metadata.uid),
        version: number(&head.metadata.resource_version),
        created: head.metadata.creation_timestamp.as_ref().map_or(0, |text| seconds(&text.0)),
        terminating: head.metadata.deletion_timestamp.is_some(),
        may_be_edited: is_secret && parsed.as_ref().is_some_and(may_be_edited_by_hand),
        mark: mark.map(|mark| state.intern(&mark)),
        parents: parents.iter().map(|owner| Uid::new(&owner.uid)).collect(),
        refs: references.iter().map(|key| state.address(key)).collect(),
        images: images.iter().map(|image| state.intern(image)).collect(),
        body,
    };
    put(&mut state, seen)
}

fn address_of(state: &mut State, kind: KindId, head: &Head<'_>) -> Address {
    let namespace = head.namespace().map(|namespace| state.intern(namespace));
    Address { kind, namespace, name: head.metadata.name.as_ref().into() }
}

/// A resource version as a number; 0 for a server whose versions are not numbers.
pub(super) fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

fn seconds(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}
