//! The disk space of mirrors: a bound for one, and one for all together.
//!
//! A mirror that outgrows its bound is not kept. If all together outgrow theirs, mirrors that were not used for a while
//! are removed, the one that was used last is removed last. If that is not enough, the largest is removed, and its apps
//! report it: the apps of small repositories do not pay for a large one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk;
use super::error::FetchError;
use super::mirrors::Mirrors;
use super::slot::Slot;
use crate::url::RepoUrl;

/// How often a mirror is measured while git writes to it.
const LOOK: Duration = Duration::from_secs(1);
/// A mirror that was not used for this long is removed before any other.
const IDLE: Duration = Duration::from_hours(1);

/// A mirror that could be removed.
struct Candidate {
    name: String,
    size: u64,
    /// `None` if this process has not used it.
    used: Option<Instant>,
}

/// Counts as growing until it is dropped.
struct Growing<'a> {
    mirrors: &'a Mirrors,
    name: String,
}

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.mirrors.growing.lock().remove(&self.name);
    }
}

impl Mirrors {
    /// Waits for work that writes to a mirror, and gives it up if the mirror outgrows its bound, or if all mirrors that
    /// grow at this moment do so and this one grows the most.
    pub(super) async fn within_space<T>(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        work: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let limit = self.options.limits.mirror();
        let mut before = None;
        let growing = Growing { mirrors: self, name: name_of(slot) };
        let mut work = std::pin::pin!(work);
        loop {
            let Ok(done) = tokio::time::timeout(LOOK, &mut work).await else {
                let size = size_of(&slot.directory).await;
                let grown = size.saturating_sub(*before.get_or_insert(size));
                if size > limit {
                    return Err(FetchError::TooLarge { repository: url.to_string(), limit });
                }
                let mut all = self.growing.lock();
                all.insert(growing.name.clone(), grown);
                if all.values().sum::<u64>() > limit && all.values().all(|other| *other <= grown) {
                    let limit = self.options.limits.mirrors;
                    return Err(FetchError::Space { repository: url.to_string(), limit });
                }
                continue;
            };
            return Ok(done);
        }
    }

    /// Keeps the bounds after a mirror has grown. The caller holds the mirror.
    pub(super) async fn make_room(&self, slot: &Slot, url: &RepoUrl) -> Result<(), FetchError> {
        let name = name_of(slot);
        let size = size_of(&slot.directory).await;
        self.measure_all().await;
        self.sizes.lock().insert(name.clone(), size);
        let limits = &self.options.limits;
        if size > limits.mirror() {
            self.discard(slot);
            return Err(FetchError::TooLarge { repository: url.to_string(), limit: limits.mirror() });
        }
        while self.total() > limits.mirrors {
            match next_to_remove(&self.candidates(&name), &name, Instant::now()) {
                Some(other) if other != name => self.remove(&other),
                Some(_) | None => {
                    self.discard(slot);
                    return Err(FetchError::Space { repository: url.to_string(), limit: limits.mirrors });
                }
            }
        }
        Ok(())
    }

    fn total(&self) -> u64 {
        self.sizes.lock().values().sum()
    }

    /// Measures the mirrors that earlier processes left, once.
    async fn measure_all(&self) {
        let mut measured = self.measured.lock().await;
        if *measured {
            return;
        }
        let root = self.root.clone();
        let list = move || -> Vec<(String, u64)> {
            let entries = std::fs::read_dir(&root).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names
                .filter(|name| disk::is_mirror(name))
                .map(|name| (name.clone(), disk::size(&root.join(name))))
                .collect()
        };
        if let Ok(sizes) = tokio::task::spawn_blocking(list).await {
            let mut known = self.sizes.lock();
            for (name, size) in sizes {
                known.entry(name).or_insert(size);
            }
        }
        *measured = true;
    }

    /// The mirror that has grown, and all others that are not in use.
    fn candidates(&self, grown: &str) -> Vec<Candidate> {
        let sizes: Vec<(String, u64)> =
            self.sizes.lock().iter().map(|(name, size)| (name.clone(), *size)).collect();
        let slots = self.slots.lock();
        let free = sizes.into_iter().filter_map(|(name, size)| {
            let used = match slots.get(&name) {
                Some(slot) if name != grown && is_in_use(slot) => return None,
                Some(slot) => Some(slot.used()),
                None => None,
            };
            Some(Candidate { name, size, used })
        });
        free.collect()
    }

    /// Removes a mirror, unless this or another process uses it.
    fn remove(&self, name: &str) {
        let slot = self.slots.lock().get(name).map(Arc::clone);
        let directory = self.root.join(name);
        // A mirror that is busy is not counted until it is fetched again.
        self.sizes.lock().remove(name);
        let held = slot.as_ref().map(|slot| slot.disk.try_lock());
        if held.as_ref().is_some_and(Result::is_err) {
            return;
        }
        let lock = std::fs::File::open(directory.join("lock"));
        if lock.as_ref().is_ok_and(|file| file.try_lock().is_err()) {
            return;
        }
        if let Some(slot) = &slot {
            forget(slot);
        }
        disk::remove(&directory);
    }

    /// Removes the mirror that the caller holds.
    fn discard(&self, slot: &Slot) {
        self.sizes.lock().remove(&name_of(slot));
        forget(slot);
        disk::sweep(&slot.directory, &[]);
        disk::remove(&slot.directory.join("state.json"));
    }
}

/// The mirror to remove: the one of those not used for a while that was used first, else the largest.
fn next_to_remove(candidates: &[Candidate], growing: &str, now: Instant) -> Option<String> {
    let is_idle = |candidate: &&Candidate| {
        let since = candidate.used.map(|used| now.saturating_duration_since(used));
        candidate.name != growing && since.is_none_or(|since| since >= IDLE)
    };
    let idle = candidates.iter().filter(is_idle).min_by_key(|candidate| candidate.used);
    let largest = || candidates.iter().max_by_key(|candidate| candidate.size);
    idle.or_else(largest).map(|candidate| candidate.name.clone())
}

/// True if a fetch runs, or if a reader holds a state of it. What was fetched last for each set of credentials is kept
/// for later callers only.
fn is_in_use(slot: &Slot) -> bool {
    if slot.disk.try_lock().is_err() {
        return true;
    }
    let lanes: Vec<_> = slot.lanes.lock().values().cloned().collect();
    for lane in lanes {
        match lane.served.try_lock() {
            Ok(mut served) => *served = None,
            Err(_) => return true,
        }
    }
    let current = slot.current.lock();
    current.as_ref().is_some_and(|current| Arc::strong_count(&current.objects) > 1)
}

fn forget(slot: &Slot) {
    *slot.current.lock() = None;
    slot.contained.clear();
}

fn name_of(slot: &Slot) -> String {
    slot.directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

async fn size_of(directory: &Path) -> u64 {
    let directory = directory.to_owned();
    tokio::task::spawn_blocking(move || disk::size(&directory)).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_that_are_idle_go_first_and_then_the_largest() {
        let now = Instant::now() + IDLE * 4;
        let candidate = |name: &str, size: u64, idle: Option<Duration>| Candidate {
            name: name.to_owned(),
            size,
            used: idle.and_then(|idle| now.checked_sub(idle)),
        };
        let minute = Duration::from_mins(1);
        let check = |candidates: Vec<Candidate>| next_to_remove(&candidates, "new", now);
        let busy = || vec![candidate("small", 1, Some(minute)), candidate("large", 9, Some(minute))];
        let with = |mut all: Vec<Candidate>, more: Vec<Candidate>| {
            all.extend(more);
            all
        };
        assert_eq!(check(busy()).as_deref(), Some("large"));
        assert_eq!(check(with(busy(), vec![candidate("new", 10, Some(minute))])).as_deref(), Some("new"));
        assert_eq!(check(with(busy(), vec![candidate("idle", 1, Some(IDLE))])).as_deref(), Some("idle"));
        let older = vec![candidate("idle", 1, Some(IDLE)), candidate("older", 1, Some(IDLE * 2))];
        assert_eq!(check(with(busy(), older)).as_deref(), Some("older"));
        let unknown = vec![candidate("older", 1, Some(IDLE * 2)), candidate("unknown", 1, None)];
        assert_eq!(check(with(busy(), unknown)).as_deref(), Some("unknown"));
        assert_eq!(check(Vec::new()), None);
    }
}
