//! Writing, bounding and removing tombstones.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::plan::{Tombstone, TombstoneLimits};
use plumb_kube::{
    ClusterClient, Gate, OwnWrite, Refusal, Selection, TOMBSTONE_TYPE, Target, TombstoneKept, WriteError,
};
use tracing::{debug, warn};

use super::secret::{APP_LABEL, ledger_entries, ledger_entry, secrets};
use crate::state::tombstone_ledger::{LedgerEntry, TombstoneLedger};

/// Annotation by which a person allows plumb to delete an object that is too large for a copy.
const DELETE_WITHOUT_COPY: &str = "plumb.dev/delete-without-copy";

/// Removing a tombstone that is younger than this, because the limits are reached, is worth a warning.
const YOUNG: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Stores the object, then removes the oldest tombstones if the limits are exceeded. The gate deletes the object only
/// after this has succeeded.
pub(in crate::sync) async fn write(
    gate: &Gate,
    namespace: &str,
    project: &str,
    tombstone: &Tombstone,
    (ledger, limits): (&TombstoneLedger, &TombstoneLimits),
) -> Result<TombstoneKept, WriteError> {
    let key = &tombstone.key;
    let Some(secrets) = secrets(namespace, project, tombstone) else {
        return Err(Refusal::TooLargeForCopy { key: key.clone(), annotation: DELETE_WITHOUT_COPY }.into());
    };
    let (kept, written) = gate.keep_tombstone(&tombstone.live, secrets).await?;
    if let Some(entry) = ledger_entry(&written) {
        let gone = ledger.add(entry, limits);
        remove_all(gate, namespace, &gone, ledger, tombstone.deleted_at).await;
    }
    Ok(kept)
}

/// Removes tombstones that are older than the settings allow, or more than the limits allow. Those that cannot be read or
/// removed stay.
pub(crate) async fn sweep(
    (client, gate): (&ClusterClient, &Gate),
    namespace: &str,
    keep: Duration,
    (ledger, limits): (&TombstoneLedger, &TombstoneLimits),
    now: Timestamp,
) {
    let selection = Selection {
        namespace: Some(namespace.to_owned()),
        labels: Some(APP_LABEL.to_owned()),
        fields: Some(format!("type={TOMBSTONE_TYPE}")),
    };
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    let listed = match client.list(&gvk, &selection).await {
        Ok(secrets) => secrets,
        Err(error) => return debug!(%error, "cannot list tombstones"),
    };
    let entries = ledger_entries(&listed);
    drop(listed);
    let (outdated, current): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| is_outdated(entry.kept.deleted_at, keep, now));
    ledger.replace(current);
    for entry in &outdated {
        remove(gate, namespace, entry).await;
    }
    let gone = ledger.exceeding(limits);
    remove_all(gate, namespace, &gone, ledger, now).await;
}

fn is_outdated(deleted_at: Timestamp, keep: Duration, now: Timestamp) -> bool {
    let end = SignedDuration::try_from(keep).ok().and_then(|keep| deleted_at.checked_add(keep).ok());
    end.is_some_and(|end| end < now)
}

async fn remove_all(
    gate: &Gate,
    namespace: &str,
    gone: &[LedgerEntry],
    ledger: &TombstoneLedger,
    now: Timestamp,
) {
    for entry in gone {
        if !remove(gate, namespace, entry).await {
            continue;
        }
        ledger.remove(&entry.kept.name);
        let (app, name) = (&entry.kept.app, &entry.kept.name);
        if now.duration_since(entry.kept.deleted_at) < YOUNG {
            warn!(%app, name, "removed a young tombstone: the limits of plumb.tombstones are reached");
        } else {
            debug!(%app, name, "removed a tombstone: the limits of plumb.tombstones are reached");
        }
    }
}

/// Removes all parts, the first one at the end: while it exists, the others are found through it. Returns whether the
/// tombstone is gone.
async fn remove(gate: &Gate, namespace: &str, entry: &LedgerEntry) -> bool {
    for (name, uid) in entry.parts.iter().rev() {
        let target = Target {
            gvk: GroupVersionKind::from_api_version("v1", "Secret"),
            namespace: Some(namespace.to_owned()),
            name: name.clone(),
        };
        let delete = OwnWrite::Delete { target, uid: uid.clone() };
        match gate.write_own(&delete).await {
            Ok(_) => {}
            // Gone already, or another Secret of this name.
            Err(error) if error.api().is_some_and(|error| error.is_not_found() || error.is_conflict()) => {}
            Err(error) => {
                debug!(%error, name, "cannot remove a tombstone");
                return false;
            }
        }
    }
    true
}

/// True if a person allowed plumb to delete this object without a copy.
pub(in crate::sync) fn is_copy_waived(live: &Manifest) -> bool {
    live.annotation(DELETE_WITHOUT_COPY).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_are_kept_for_the_days_of_the_settings() {
        let deleted_at = Timestamp::from_second(1_000_000).unwrap();
        let month = Duration::from_hours(30 * 24);
        let end = deleted_at + month;
        assert!(!is_outdated(deleted_at, month, end - SignedDuration::from_secs(1)));
        assert!(is_outdated(deleted_at, month, end + SignedDuration::from_secs(1)));
    }
}
