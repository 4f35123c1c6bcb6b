//! The parts of an Application as text, for several commands.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::Pause;
use plumb_core::object::Manifest;
use plumb_core::text::one_line;
use plumb_crd::application::{ApplicationSource, OperationState};
use plumb_crd::drift_report::DriftPause;
use plumb_crd::{Application, DriftReport};
use serde_json::Value;

use crate::output::Output;

/// Name or URL of the destination cluster.
pub(crate) fn cluster(application: &Application) -> &str {
    let destination = &application.spec.destination;
    if destination.name.is_empty() { &destination.server } else { &destination.name }
}

/// `namespace/name`.
pub(crate) fn qualified(application: &Application) -> String {
    format!("{}/{}", application.metadata.namespace, application.metadata.name)
}

/// The sources, from `sources` or `source`.
pub(crate) fn sources(application: &Application) -> Vec<&ApplicationSource> {
    if application.spec.sources.is_empty() {
        application.spec.source.iter().map(AsRef::as_ref).collect()
    } else {
        application.spec.sources.iter().collect()
    }
}

/// `Manual`, `Auto` or `Auto-Prune`.
pub(crate) fn policy(application: &Application) -> &'static str {
    let automated = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    match automated {
        None => "Manual",
        Some(automated) if automated.enabled == Some(false) => "Manual",
        Some(automated) if automated.prune == Some(true) => "Auto-Prune",
        Some(_) => "Auto",
    }
}

/// `<none>`, or the types of the conditions, each with its number if there are several.
pub(crate) fn conditions(application: &Application) -> String {
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

/// The summary of a report: `1 drifted: LiveEdit, 3h`, `2 explained`, or nothing. What asks nothing of anybody is no news.
pub(crate) fn drift(report: &DriftReport, now: Timestamp) -> String {
    let summary = &report.summary;
    match (summary.counted, summary.explained.saturating_sub(summary.quiet)) {
        (0, 0) => String::new(),
        (0, explained) => format!("{explained} explained"),
        (counted, _) => {
            let age = summary.since.map(|since| format!(", {}", age(since, now))).unwrap_or_default();
            format!("{counted} drifted: {}{age}", summary.worst)
        }
    }
}

/// `Degraded for 21d`, if the app has not been healthy for some time.
pub(crate) fn unhealthy_for(application: &Application, now: Timestamp) -> Option<String> {
    let health = &application.status.health;
    let since = health.last_transition_time?;
    let is_well = matches!(health.status.as_str(), "" | "Healthy" | "Suspended");
    let is_news = now.duration_since(since) < WORTH_A_WORD;
    (!is_well && !is_news).then(|| format!("{} for {}", health.status, age(since, now)))
}

/// An app that starts is not healthy for a moment.
const WORTH_A_WORD: SignedDuration = SignedDuration::from_mins(5);

/// How long ago, as kubectl prints it: `45s`, `2m30s`, `12m`, `3h25m`, `17h`, `5d`, `2y`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    let whole = |unit: i64, name: char| format!("{}{name}", seconds / unit);
    // For young objects one unit is too coarse.
    let exact = |unit: i64, name: char, smaller: i64, smaller_name: char| match seconds % unit / smaller {
        0 => whole(unit, name),
        rest => format!("{}{name}{rest}{smaller_name}", seconds / unit),
    };
    match seconds {
        _ if seconds < 2 * MINUTE => whole(1, 's'),
        _ if seconds < 10 * MINUTE => exact(MINUTE, 'm', 1, 's'),
        _ if seconds < 3 * HOUR => whole(MINUTE, 'm'),
        _ if seconds < 8 * HOUR => exact(HOUR, 'h', MINUTE, 'm'),
        _ if seconds < 2 * DAY => whole(HOUR, 'h'),
        _ if seconds < 8 * DAY => exact(DAY, 'd', HOUR, 'h'),
        _ if seconds < 2 * YEAR => whole(DAY, 'd'),
        _ if seconds < 8 * YEAR => exact(YEAR, 'y', DAY, 'd'),
        _ => whole(YEAR, 'y'),
    }
}

/// The pauses of an app: `paused until 2026-11-16T04:00:00Z: incident 4711`, or `2 objects paused`.
pub(crate) fn paused(
    application: &Application,
    report: Option<&DriftReport>,
    now: Timestamp,
) -> Option<String> {
    if let Some(pause) = app_pause(application, now) {
        return Some(format!("paused {}", paused_until(&pause)));
    }
    match object_pauses(report, now).count() {
        0 => None,
        1 => Some("1 object paused".to_owned()),
        n => Some(format!("{n} objects paused")),
    }
}

/// The pause of the whole app, if it is active.
pub(crate) fn app_pause(application: &Application, now: Timestamp) -> Option<Pause> {
    let pause = Pause::parse(application.annotation(Pause::ANNOTATION)?).written_at(application.paused_at);
    pause.holds_at(now).then_some(pause)
}

/// The active pauses of single objects.
pub(crate) fn object_pauses(
    report: Option<&DriftReport>,
    now: Timestamp,
) -> impl Iterator<Item = &DriftPause> {
    let is_app = |pause: &DriftPause| pause.kind == Application::KIND && pause.group == "argoproj.io";
    report
        .into_iter()
        .flat_map(|report| &report.pauses)
        .filter(move |pause| !is_app(pause) && pause.until.is_none_or(|until| now < until))
}

/// `until 2026-11-16T04:00:00Z by ada: incident 4711`.
pub(crate) fn paused_until(pause: &Pause) -> String {
    let until = pause.until.map_or_else(|| "until resumed".to_owned(), |at| format!("until {at}"));
    let by = pause.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = if pause.reason.is_empty() { String::new() } else { format!(": {}", pause.reason) };
    format!("{until}{by}{reason}")
}

/// The first seven digits of a commit; a version or digest unchanged.
pub(crate) fn short(revision: &str) -> &str {
    let is_commit = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { revision.get(..7).unwrap_or(revision) } else { revision }
}

/// The last or current operation, as argocd prints it.
pub(crate) fn operation(state: &OperationState) -> Vec<(&'static str, String)> {
    let kind = if state.operation.sync.is_some() { "Sync" } else { "" };
    let result = state.sync_result.as_deref();
    let revision = result.map(|result| result.all_revisions().join(", "));
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

/// `label:` in a column of twenty, then the text in one line.
pub(crate) fn line(label: &str, text: &str) -> String {
    format!("{:<20}{}", format!("{label}:"), one_line(text)).trim_end().to_owned()
}

/// Prints sync, health and operation after a wait, as `app get` does.
pub(crate) fn print_summary(out: Output, application: &Application) {
    out.print("");
    out.print(&line("Name", &qualified(application)));
    out.print(&line("Sync Status", &application.status.sync.status));
    out.print(&line("Health Status", &application.status.health.status));
    if let Some(state) = &application.status.operation_state {
        out.print("");
        for (label, text) in operation(state) {
            out.print(&line(label, &text));
        }
    }
}

/// The object without `managedFields`.
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
    fn what_has_not_been_healthy_for_long_is_said() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let said = |status: &str, since: &str| {
            let app = serde_json::json!({"metadata": {"name": "a", "namespace": "argocd"}, "spec": {"destination": {}, "project": ""},
                "status": {"health": {"status": status, "lastTransitionTime": since}}});
            unhealthy_for(&Application::from_json(&app).unwrap(), now)
        };
        assert_eq!(said("Degraded", "2026-10-26T12:00:00Z").as_deref(), Some("Degraded for 21d"));
        assert_eq!(said("Progressing", "2026-11-16T11:58:00Z"), None, "it starts");
        assert_eq!(said("Healthy", "2026-10-26T12:00:00Z"), None);
    }

    #[test]
    fn quiet_findings_are_no_news() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let said = |explained: i64, quiet: i64| {
            let report = serde_json::json!({"metadata": {"name": "a"}, "findings": [],
                "summary": {"counted": 0, "explained": explained, "quiet": quiet}});
            drift(&DriftReport::from_json(&report).unwrap(), now)
        };
        assert_eq!([said(2, 0), said(2, 1), said(2, 2)], ["2 explained", "1 explained", ""]);
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        let now = Timestamp::from_second(900_000_000).unwrap();
        let said = |seconds: i64| age(Timestamp::from_second(900_000_000 - seconds).unwrap(), now);
        assert_eq!([said(-5), said(0), said(119), said(120), said(121)], ["0s", "0s", "119s", "2m", "2m1s"]);
        assert_eq!([said(600), said(10_799), said(10_800), said(28_000)], ["10m", "179m", "3h", "7h46m"]);
        assert_eq!([said(28_800), said(172_799), said(176_400), said(691_200)], ["8h", "47h", "2d1h", "8d"]);
        assert_eq!([said(63_072_000), said(64_000_000), said(300_000_000)], ["2y", "2y10d", "9y"]);
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
