//! The parts of an Application in words and columns. Several commands show the same ones.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_crd::application::{ApplicationSource, OperationState};
use plumb_crd::{Application, DriftReport};
use serde_json::Value;

/// Name or address of the destination cluster.
pub(super) fn cluster(application: &Application) -> &str {
    let destination = &application.spec.destination;
    if destination.name.is_empty() { &destination.server } else { &destination.name }
}

/// `namespace/name`.
pub(super) fn qualified(application: &Application) -> String {
    format!("{}/{}", application.metadata.namespace, application.metadata.name)
}

/// The sources, whichever field they stand in.
pub(super) fn sources(application: &Application) -> Vec<&ApplicationSource> {
    if application.spec.sources.is_empty() {
        application.spec.source.iter().map(AsRef::as_ref).collect()
    } else {
        application.spec.sources.iter().collect()
    }
}

/// `Manual`, `Auto` or `Auto-Prune`.
pub(super) fn policy(application: &Application) -> &'static str {
    let automated = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    match automated {
        None => "Manual",
        Some(automated) if automated.enabled == Some(false) => "Manual",
        Some(automated) if automated.prune == Some(true) => "Auto-Prune",
        Some(_) => "Auto",
    }
}

/// `<none>`, or the types of the conditions, each with its number if there are several.
pub(super) fn conditions(application: &Application) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for condition in &application.status.conditions {
        *counts.entry(&condition.condition_type).or_default() += 1;
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(name, n)| if *n > 1 { format!("{name}({n})") } else { (*name).to_owned() })
        .collect();
    if words.is_empty() { "<none>".to_owned() } else { words.join(",") }
}

/// What the report says, in a column: `1 counts: LiveEdit for 3h`, `2 explained`, or nothing.
pub(super) fn drift(report: &DriftReport, now: Timestamp) -> String {
    let summary = &report.summary;
    match (summary.counted, summary.explained) {
        (0, 0) => String::new(),
        (0, explained) => format!("{explained} explained"),
        (counted, _) => {
            let since = summary.since.map(|since| format!(" for {}", age(since, now))).unwrap_or_default();
            let verb = if counted == 1 { "counts" } else { "count" };
            format!("{counted} {verb}: {}{since}", summary.worst)
        }
    }
}

/// How long ago, as kubectl says it: `45s`, `12m`, `3h`, `5d`, `2y`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        172_800..63_072_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// The first seven digits of a commit; a version or digest as it is.
pub(super) fn short(revision: &str) -> &str {
    let is_commit = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { revision.get(..7).unwrap_or(revision) } else { revision }
}

/// The last or current operation, as argocd prints it.
pub(super) fn operation(state: &OperationState) -> Vec<(&'static str, String)> {
    let kind = if state.operation.sync.is_some() { "Sync" } else { "" };
    let result = state.sync_result.as_deref();
    let revision = result.map(|result| {
        if result.revisions.is_empty() { result.revision.clone() } else { result.revisions.join(", ") }
    });
    let ended = state.finished_at;
    let mut lines = vec![
        ("Operation", kind.to_owned()),
        ("Sync Revision", revision.unwrap_or_default()),
        ("Phase", state.phase.clone()),
        ("Start", state.started_at.to_string()),
        ("Finished", ended.map(|at| at.to_string()).unwrap_or_default()),
    ];
    if let Some(ended) = ended {
        let seconds = ended.as_second() - state.started_at.as_second();
        lines.push(("Duration", format!("{seconds}s")));
    }
    if state.retry_count > 0 {
        lines.push(("Retries", state.retry_count.to_string()));
    }
    lines.push(("Message", state.message.clone()));
    lines
}

/// `label:` in a column of twenty, then the text.
pub(super) fn line(label: &str, text: &str) -> String {
    format!("{:<20}{text}", format!("{label}:")).trim_end().to_owned()
}

/// The object as people want to read it: without the bookkeeping of field owners.
pub(crate) fn readable(object: &Manifest) -> Value {
    let mut value = object.value().clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = Timestamp::from_second(200_000_000).unwrap();
        let said = |seconds: i64| age(Timestamp::from_second(200_000_000 - seconds).unwrap(), now);
        assert_eq!(
            [said(0), said(119), said(120), said(7_200), said(172_800), said(100_000_000), said(-5)],
            ["0s", "119s", "2m", "2h", "2d", "3y", "0s"]
        );
    }

    #[test]
    fn only_commits_are_cut_short() {
        assert_eq!(short("0123456789012345678901234567890123456789"), "0123456");
        assert_eq!(short("1.2.3"), "1.2.3");
        assert_eq!(
            short("sha256:0123456789012345678901234567890123456789"),
            "sha256:0123456789012345678901234567890123456789"
        );
    }
}
