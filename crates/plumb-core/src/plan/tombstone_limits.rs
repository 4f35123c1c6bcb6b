//! How much plumb keeps of deleted objects, and which tombstones go first.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::app::AppId;

/// A tombstone that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTombstone {
    /// Name of its Secret; further parts have names of their own.
    pub name: String,
    /// The project of the app at the time of the deletion.
    pub project: String,
    /// The app.
    pub app: AppId,
    /// Bytes of all parts.
    pub bytes: u64,
    /// When the object was deleted.
    pub deleted_at: Timestamp,
}

/// The most that is kept. The oldest go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneLimits {
    /// Tombstones of one app.
    pub app_count: usize,
    /// Bytes of all tombstones of one app.
    pub app_bytes: u64,
    /// Bytes of all tombstones.
    pub total_bytes: u64,
}

const MIB: u64 = 1 << 20;

impl Default for TombstoneLimits {
    fn default() -> Self {
        Self { app_count: 200, app_bytes: 16 * MIB, total_bytes: 64 * MIB }
    }
}

/// The names of the tombstones that exceed the limits.
///
/// An app that exceeds its own limits loses its own oldest ones. If all together exceed the total, the project that uses
/// most loses its oldest ones: a tenant that deletes and recreates objects removes only its own. `newest`, which was just
/// written, stays.
pub fn exceeding<'k>(
    kept: &'k [KeptTombstone],
    newest: Option<&str>,
    limits: &TombstoneLimits,
) -> Vec<&'k KeptTombstone> {
    let mut oldest_first: Vec<&KeptTombstone> = kept.iter().collect();
    oldest_first.sort_by(|a, b| (a.deleted_at, &a.name).cmp(&(b.deleted_at, &b.name)));
    let mut gone: BTreeSet<&str> = BTreeSet::new();
    let mut apps: BTreeMap<&AppId, (usize, u64)> = BTreeMap::new();
    for one in kept {
        let (count, bytes) = apps.entry(&one.app).or_default();
        (*count, *bytes) = (*count + 1, bytes.saturating_add(one.bytes));
    }
    let is_newest = |one: &KeptTombstone| newest == Some(one.name.as_str());
    for one in oldest_first.iter().filter(|one| !is_newest(one)) {
        let (count, bytes) = apps.entry(&one.app).or_default();
        if *count > limits.app_count || *bytes > limits.app_bytes {
            (*count, *bytes) = (*count - 1, bytes.saturating_sub(one.bytes));
            gone.insert(&one.name);
        }
    }
    let mut projects: BTreeMap<&str, u64> = BTreeMap::new();
    for one in kept.iter().filter(|one| !gone.contains(one.name.as_str())) {
        *projects.entry(&one.project).or_default() += one.bytes;
    }
    while projects.values().sum::<u64>() > limits.total_bytes {
        let mut by_use: Vec<(&str, u64)> = projects.iter().map(|(name, bytes)| (*name, *bytes)).collect();
        by_use.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let victim = by_use.iter().find_map(|(project, _)| {
            let mut own = oldest_first.iter().filter(|one| one.project == *project);
            own.find(|one| !gone.contains(one.name.as_str()) && !is_newest(one))
        });
        let Some(victim) = victim else { break };
        gone.insert(&victim.name);
        if let Some(bytes) = projects.get_mut(victim.project.as_str()) {
            *bytes = bytes.saturating_sub(victim.bytes);
        }
    }
    oldest_first.into_iter().filter(|one| gone.contains(one.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name project/app bytes`, the oldest first.
    fn kept(lines: &str) -> Vec<KeptTombstone> {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate();
        lines
            .map(|(second, line)| {
                let [name, app, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                let (project, app) = app.split_once('/').unwrap();
                KeptTombstone {
                    name: name.to_owned(),
                    project: project.to_owned(),
                    app: AppId { namespace: "argocd".to_owned(), name: app.to_owned() },
                    bytes: bytes.parse().unwrap(),
                    deleted_at: Timestamp::from_second(i64::try_from(second).unwrap()).unwrap(),
                }
            })
            .collect()
    }

    #[track_caller]
    fn check(lines: &str, (app_count, app_bytes, total_bytes): (usize, u64, u64), expected: &[&str]) {
        let kept = kept(lines);
        let newest = kept.last().map(|one| one.name.as_str());
        let limits = TombstoneLimits { app_count, app_bytes, total_bytes };
        let gone = exceeding(&kept, newest, &limits);
        assert_eq!(gone.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_oldest_of_the_app_that_exceeds_its_limits_go() {
        let lines = "a1 p/a 10\n b1 p/b 10\n a2 p/a 10\n a3 p/a 10";
        check(lines, (3, 100, 1000), &[]);
        check(lines, (2, 100, 1000), &["a1"]);
        check(lines, (9, 25, 1000), &["a1"]);
        check(lines, (9, 10, 1000), &["a1", "a2"]);
        // What was just written stays, even if it alone is more than the limit.
        check(lines, (9, 1, 1000), &["a1", "b1", "a2"]);
        check(lines, (0, 100, 1000), &["a1", "b1", "a2"]);
    }

    #[test]
    fn a_tenant_that_floods_loses_only_its_own() {
        let lines =
            "good1 shop/web 10\n good2 shop/web 10\n evil1 evil/a 30\n evil2 evil/b 30\n evil3 evil/c 30";
        check(lines, (9, 100, 110), &[]);
        check(lines, (9, 100, 100), &["evil1"]);
        check(lines, (9, 100, 60), &["evil1", "evil2"]);
        // Only when the flooding tenant has nothing else left.
        check(lines, (9, 100, 40), &["good1", "evil1", "evil2"]);
    }
}
