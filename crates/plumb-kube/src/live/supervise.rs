//! Starts and ends watches, so that every kind that the cluster serves is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use plumb_core::object::GroupKind;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::core::Core;
use super::feeder::Feeder;
use super::options::never_watched;
use super::record::KindId;
use crate::backoff::Backoff;
use crate::catalog::{Catalog, Resource};
use crate::error::ApiError;
use crate::fault_log::FaultLog;
use crate::feed::{FeedSource, follow};
use crate::read::Selection;

/// A CRD is visible before the server serves its kind, and its schema is published later still. So after each
/// change of a CRD discovery runs again at these moments; an unchanged answer costs a `304`.
const LOOK_AGAIN_AFTER: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(120),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
const DISCOVERY_BACKOFF: Duration = Duration::from_secs(1);
const DISCOVERY_BACKOFF_MOST: Duration = Duration::from_secs(30);

/// One watched kind; its watches end when this is dropped.
struct Followed {
    resource: Resource,
    id: KindId,
    _watches: JoinSet<()>,
}

/// Discovers kinds, starts and ends their watches, until the task is aborted.
pub(super) async fn supervise(core: Arc<Core>) {
    let mut catalogs = core.client.catalog_changes();
    discover_first(&core).await;
    let mut followed: BTreeMap<GroupKind, Followed> = BTreeMap::new();
    let mut looks: Vec<Instant> = Vec::new();
    let mut faults = FaultLog::default();
    loop {
        let catalog = Arc::clone(&catalogs.borrow_and_update());
        adjust(&core, &catalog, &mut followed);
        core.discovered.send_replace(true);
        core.publish_complete();
        // Until the catalog changes, by this discovery or by another caller's.
        loop {
            tokio::select! {
                changed = catalogs.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    break;
                }
                () = core.reconsider.notified() => break,
                () = core.look_again.notified() => {
                    let now = Instant::now();
                    looks = LOOK_AGAIN_AFTER.iter().rev().map(|after| now + *after).collect();
                }
                () = sleep_until(looks.last().copied()) => {
                    looks.pop();
                    if let Err(error) = core.client.discover().await {
                        log_fault(&core, &mut faults, &error);
                        looks.insert(0, Instant::now() + DISCOVERY_BACKOFF_MOST);
                    } else {
                        faults.over();
                    }
                }
            }
        }
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn discover_first(core: &Core) {
    let mut backoff = Backoff::new(DISCOVERY_BACKOFF, DISCOVERY_BACKOFF_MOST);
    let mut faults = FaultLog::default();
    while let Err(error) = core.client.discover().await {
        log_fault(core, &mut faults, &error);
        tokio::time::sleep(backoff.next_spread()).await;
    }
}

fn log_fault(core: &Core, faults: &mut FaultLog, error: &ApiError) {
    if let Some(times) = faults.fault(std::time::Instant::now()) {
        let server = core.client.server();
        tracing::warn!(%error, times, server, "cannot discover the cluster's kinds; trying again");
    }
}

fn adjust(core: &Arc<Core>, catalog: &Catalog, followed: &mut BTreeMap<GroupKind, Followed>) {
    let wanted: BTreeMap<GroupKind, Resource> = catalog
        .kinds
        .keys()
        .filter(|kind| !never_watched(kind) && !(core.options.excluded)(kind))
        .filter_map(|kind| Some((kind.clone(), catalog.watchable(kind)?)))
        .filter(|(_, resource)| !scopes(core, resource).is_empty())
        .collect();

    let gone: BTreeSet<GroupKind> =
        followed.keys().filter(|kind| !wanted.contains_key(*kind)).cloned().collect();
    for kind in gone {
        let Some(old) = followed.remove(&kind) else { continue };
        let id = old.id;
        drop(old);
        tracing::info!(%kind, "kind is no longer watched");
        let changes = core.state_mut().close_table(id);
        for change in changes {
            core.publish(&change);
        }
    }
    for (kind, resource) in wanted {
        let is_same = followed.get(&kind).is_some_and(|present| present.resource == resource);
        if is_same {
            continue;
        }
        followed.remove(&kind);
        let fresh = start(core, &kind, resource);
        followed.insert(kind, fresh);
    }
}

/// The namespaces to watch a kind in; `None` is one watch for all of them.
fn scopes(core: &Core, resource: &Resource) -> Vec<Option<String>> {
    let options = &core.options;
    if options.namespaces.is_empty() {
        return vec![None];
    }
    if resource.namespaced {
        return options.namespaces.iter().cloned().map(Some).collect();
    }
    if options.cluster_scoped { vec![None] } else { Vec::new() }
}

fn start(core: &Arc<Core>, kind: &GroupKind, resource: Resource) -> Followed {
    let scopes = scopes(core, &resource);
    let id = core.state_mut().open_table(&resource, &scopes);
    let mut watches = JoinSet::new();
    for (scope, namespace) in scopes.into_iter().enumerate() {
        let again = core.state_mut().scope_mut(id, scope).map(|scope| Arc::clone(&scope.lists.again));
        let source = FeedSource {
            resource: resource.clone(),
            selection: Selection { namespace, ..Selection::default() },
            again: again.unwrap_or_default(),
        };
        let client = core.client.clone();
        let mut feeder = Feeder::new(Arc::clone(core), kind.clone(), id, scope);
        watches.spawn(async move {
            follow(&client, &source, &mut |event| feeder.note(&event)).await;
        });
    }
    Followed { resource, id, _watches: watches }
}
