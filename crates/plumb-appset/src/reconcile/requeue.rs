//! When to generate again without an event.

use std::time::Duration;

use plumb_crd::ApplicationSet;
use plumb_crd::application_set::ApplicationSetGenerator;
use plumb_crd::wire::Wire as _;
use serde_json::Value as Json;

/// Servers that cannot be watched are asked this often.
const SERVERS: u64 = 30 * 60;

/// Longest time: a year is as good as never, and adds to any clock.
const LONGEST: u64 = 365 * 24 * 60 * 60;

/// Deepest nesting of generators that is read.
const DEPTH: usize = 3;

/// The shortest time of all generators; `None` if events are enough. `usual` is that of Git and of objects in the cluster.
pub fn requeue_after(set: &ApplicationSet, usual: Duration) -> Option<Duration> {
    set.spec
        .generators
        .iter()
        .filter_map(|entry| of_entry(entry, usual.as_secs(), DEPTH))
        .min()
        .map(Duration::from_secs)
}

fn of_entry(entry: &ApplicationSetGenerator, usual: u64, depth: usize) -> Option<u64> {
    let seconds = |set: Option<i64>, usual: u64| {
        let seconds = set.map_or(usual, |seconds| u64::try_from(seconds).unwrap_or_default());
        (seconds > 0).then_some(seconds.min(LONGEST))
    };
    let mut all: Vec<u64> = Vec::new();
    all.extend(entry.git.iter().filter_map(|git| seconds(git.requeue_after_seconds, usual)));
    let decision = entry.cluster_decision_resource.iter();
    all.extend(decision.filter_map(|decision| seconds(decision.requeue_after_seconds, usual)));
    all.extend(entry.scm_provider.iter().filter_map(|scm| seconds(scm.requeue_after_seconds, SERVERS)));
    all.extend(entry.pull_request.iter().filter_map(|pulls| seconds(pulls.requeue_after_seconds, SERVERS)));
    all.extend(entry.plugin.iter().filter_map(|plugin| seconds(plugin.requeue_after_seconds, SERVERS)));
    let matrix = entry.matrix.iter().flat_map(|matrix| &matrix.generators);
    let merge = entry.merge.iter().flat_map(|merge| &merge.generators);
    if depth > 0 {
        for child in matrix.chain(merge) {
            let child = ApplicationSetGenerator::read(&Json::Object(child.0.clone()));
            all.extend(child.ok().and_then(|child| of_entry(&child, usual, depth - 1)));
        }
    }
    all.into_iter().min()
}
