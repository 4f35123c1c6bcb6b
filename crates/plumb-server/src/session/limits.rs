//! Failed logins by name. They are kept in a `ConfigMap`, so they hold for all replicas and across restarts.

use std::collections::BTreeMap;

use crate::random::hex;

/// So many failures within the window lock a name.
const MOST_FAILURES: u32 = 5;
/// The window in seconds.
const WINDOW: i64 = 300;
/// How many names are kept. Names beyond that are dropped, oldest first, but never a locked one.
const MOST_NAMES: usize = 4_000;
/// Before each key of this part.
const PREFIX: &str = "failed.";

/// How many ended sessions are kept. Each is kept until its token ends by itself. An entry of 70 bytes each leaves room for
/// all failed logins in an object of 1 MiB.
const MOST_REVOKED: usize = 8_000;
/// Before each key of an ended session.
pub(super) const REVOKED: &str = "revoked.";
/// Most bytes of all entries.
const MOST_BYTES: usize = 900 << 10;

/// Nothing more can be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountersFull;

/// Fails if there may be no room for a failed login.
pub(super) fn check_room(data: &BTreeMap<String, String>) -> Result<(), CountersFull> {
    let bytes: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MOST_BYTES { Err(CountersFull) } else { Ok(()) }
}

/// The changes that note an ended session until its token ends; 0: for good.
pub(super) fn revoked(
    data: &BTreeMap<String, String>,
    key: &str,
    until: i64,
    now: i64,
) -> Result<BTreeMap<String, Option<String>>, CountersFull> {
    let mut changes = outdated(data, now);
    let is_kept = |name: &&String| name.starts_with(REVOKED) && !changes.contains_key(*name);
    let n_kept = data.keys().filter(is_kept).count();
    // None of the kept ones may go: its session would be alive again.
    if n_kept >= MOST_REVOKED && !data.contains_key(key) {
        return Err(CountersFull);
    }
    changes.insert(key.to_owned(), Some(until.to_string()));
    Ok(changes)
}

/// The key of a user name. Names are hostile input: a hash has a fixed size and only letters that a key may have.
pub(super) fn key(user: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, user.as_bytes());
    format!("{PREFIX}{}", hex(digest.as_ref().get(..16).unwrap_or_default()))
}

fn parse(text: &str) -> Option<(u32, i64)> {
    let (count, at) = text.split_once(' ')?;
    Some((count.parse().ok()?, at.parse().ok()?))
}

/// True if this name may not try now.
pub(super) fn is_locked(data: &BTreeMap<String, String>, key: &str, now: i64) -> bool {
    let failures = data.get(key).and_then(|text| parse(text));
    failures.is_some_and(|(count, at)| count >= MOST_FAILURES && now - at < WINDOW)
}

/// The changes that note a failure: new values, and `None` for what is to be removed.
pub(super) fn failed(
    data: &BTreeMap<String, String>,
    key: &str,
    now: i64,
) -> BTreeMap<String, Option<String>> {
    let before = data.get(key).and_then(|text| parse(text)).filter(|(_, at)| now - at < WINDOW);
    let count = before.map_or(0, |(count, _)| count).saturating_add(1);
    let mut changes = outdated(data, now);
    let others = data.iter().filter(|(name, _)| name.starts_with(PREFIX) && name.as_str() != key);
    let mut others: Vec<(&String, (u32, i64))> =
        others.filter_map(|(name, text)| Some((name, parse(text)?))).collect();
    others.retain(|(name, _)| !changes.contains_key(*name));
    if others.len() >= MOST_NAMES {
        others.retain(|(_, (count, _))| *count < MOST_FAILURES);
        others.sort_by_key(|(_, (_, at))| *at);
        let excess = others.len().min(data.len().saturating_sub(MOST_NAMES) + 1);
        changes.extend(others.iter().take(excess).map(|(name, _)| ((*name).clone(), None)));
    }
    changes.insert(key.to_owned(), Some(format!("{count} {now}")));
    changes
}

/// Entries that mean nothing any more: old failures, and revoked tokens that have expired.
fn outdated(data: &BTreeMap<String, String>, now: i64) -> BTreeMap<String, Option<String>> {
    let is_old = |(name, text): &(&String, &String)| match name.strip_prefix(PREFIX) {
        Some(_) => parse(text).is_none_or(|(_, at)| now - at >= WINDOW),
        None => text.parse::<i64>().is_ok_and(|until| until > 0 && until < now),
    };
    data.iter().filter(is_old).map(|(name, _)| (name.clone(), None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(data: &mut BTreeMap<String, String>, changes: BTreeMap<String, Option<String>>) {
        for (key, value) in changes {
            match value {
                Some(value) => data.insert(key, value),
                None => data.remove(&key),
            };
        }
    }

    #[test]
    fn five_failures_lock_a_name_for_a_while() {
        let mut data = BTreeMap::new();
        let (admin, other) = (key("admin"), key("other"));
        for now in 0..5 {
            assert!(!is_locked(&data, &admin, now));
            let changes = failed(&data, &admin, now);
            apply(&mut data, changes);
        }
        assert!(is_locked(&data, &admin, 5) && !is_locked(&data, &other, 5));
        assert!(!is_locked(&data, &admin, 4 + WINDOW), "the window is over");
        let changes = failed(&data, &other, 4 + WINDOW);
        apply(&mut data, changes);
        assert!(!data.contains_key(&admin), "old entries are removed");
    }

    /// Counted by name; other names cannot flush it (CVE-2020-8827, CVE-2024-21652, CVE-2024-21662).
    #[test]
    fn many_names_do_not_unlock_one() {
        let mut data = BTreeMap::new();
        let admin = key("admin");
        data.insert(admin.clone(), "5 100".to_owned());
        for n in 0..MOST_NAMES + 50 {
            let changes = failed(&data, &key(&n.to_string()), 101);
            apply(&mut data, changes);
        }
        assert!(is_locked(&data, &admin, 102));
        assert!(data.len() <= MOST_NAMES + 2, "{}", data.len());
    }

    #[test]
    fn ended_sessions_are_bounded_and_none_comes_back() {
        let mut data = BTreeMap::new();
        let end = |data: &mut BTreeMap<String, String>, n: usize, until: i64, now: i64| {
            let changes = revoked(data, &format!("{REVOKED}{n:040}"), until, now)?;
            apply(data, changes);
            Ok::<_, CountersFull>(())
        };
        for n in 0..MOST_REVOKED {
            assert_eq!(end(&mut data, n, 1_000, 1), Ok(()));
        }
        assert_eq!(end(&mut data, MOST_REVOKED, 1_000, 1), Err(CountersFull));
        assert_eq!(end(&mut data, 7, 1_000, 1), Ok(()), "one that is noted already");
        assert_eq!(data.len(), MOST_REVOKED);
        assert_eq!(check_room(&data), Ok(()), "failed logins still have room");
        assert_eq!(end(&mut data, MOST_REVOKED, 5_000, 1_001), Ok(()), "tokens that ended make room");
        assert_eq!(data.len(), 1);
        data.insert("x".to_owned(), "x".repeat(1 << 20));
        assert_eq!(check_room(&data), Err(CountersFull));
    }
}
