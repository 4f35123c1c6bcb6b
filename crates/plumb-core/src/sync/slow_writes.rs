//! What an operation says while the API server does not answer its writes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::object::ObjectKey;

/// A write that takes longer is told.
pub const SLOW_WRITE: Duration = Duration::from_secs(5);

/// What a sync waits for, if writes have been under way for long. `writes` are those under way, with their ages.
pub fn slow_writes(writes: &[(ObjectKey, Duration)]) -> Option<String> {
    let mut places: BTreeMap<(&str, &str), (usize, Duration)> = BTreeMap::new();
    for (key, age) in writes.iter().filter(|(_, age)| *age >= SLOW_WRITE) {
        let place = places.entry((key.kind.as_str(), key.namespace_or_empty())).or_default();
        place.0 += 1;
        place.1 = place.1.max(*age);
    }
    let ((kind, namespace), (count, longest)) =
        places.iter().max_by_key(|(place, (count, longest))| (longest.as_secs(), *count, *place))?;
    let kind = if *count == 1 { format!("1 {kind}") } else { format!("{count} objects of kind {kind}") };
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let others: usize = places.values().map(|(count, _)| count).sum::<usize>() - count;
    let others = if others == 0 { String::new() } else { format!(" and {others} others") };
    Some(format!(
        "waiting for the API server's answer to writes of {kind}{place}{others} for {} s; an admission webhook may be slow",
        longest.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(writes: &[(&str, Option<&str>, u64)], expected: Option<&str>) {
        let writes: Vec<(ObjectKey, Duration)> = writes
            .iter()
            .enumerate()
            .map(|(n, (kind, namespace, seconds))| {
                let key = ObjectKey::new("", *kind, namespace.map(str::to_owned), format!("x{n}"));
                (key, Duration::from_secs(*seconds))
            })
            .collect();
        assert_eq!(slow_writes(&writes).as_deref(), expected);
    }

    #[test]
    fn the_place_that_takes_longest_is_named() {
        check(&[], None);
        check(&[("ConfigMap", Some("web"), 4)], None);
        check(
            &[("ConfigMap", Some("web"), 12), ("ConfigMap", Some("web"), 7), ("Secret", Some("web"), 1)],
            Some(
                "waiting for the API server's answer to writes of 2 objects of kind ConfigMap in namespace web for 12 s; \
                 an admission webhook may be slow",
            ),
        );
        check(
            &[("ClusterRole", None, 30), ("ConfigMap", Some("web"), 7), ("ConfigMap", Some("api"), 6)],
            Some(
                "waiting for the API server's answer to writes of 1 ClusterRole and 2 others for 30 s; an admission \
                 webhook may be slow",
            ),
        );
    }
}
