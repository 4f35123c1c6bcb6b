//! What happened to an app lately: what came and went between two reports on it.
//!
//! A report says what is. What was is known only at the moment of its change, so each report carries the changes since the
//! one before. They are written with a report that is written anyway, and are no reason to write one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::drift_report::{DriftFinding, DriftPause, DriftReport, RecentEvent, UnhealthyObject};
use crate::metadata::object_key;
use crate::wire::Wire as _;
use plumb_core::object::ObjectKey;

/// Most entries of a report.
const MOST: usize = 100;
/// Most bytes of them.
const MOST_BYTES: usize = 32 << 10;
/// Most entries that one change of a report adds; a large sync may end hundreds of findings at once.
const MOST_AT_ONCE: usize = 20;
/// Longest text of an entry.
const LONGEST: usize = 200;

type Key = (ObjectKey, String);

impl DriftReport {
    /// The same report with what changed since the report before, what happened beside it, and what the report before
    /// remembered; the latest first.
    #[must_use]
    pub fn with_recent(
        self,
        before: Option<&Self>,
        beside: impl IntoIterator<Item = RecentEvent>,
        now: Timestamp,
    ) -> Self {
        let nothing = Self::default();
        let before = before.unwrap_or(&nothing);
        let mut fresh = changes(before, &self, now);
        fresh.sort_by_key(|event| std::cmp::Reverse(event.at));
        fresh.truncate(MOST_AT_ONCE);
        fresh.extend(beside);
        fresh.sort_by_key(|event| std::cmp::Reverse(event.at));
        let mut bytes = 0;
        let recent = fresh.into_iter().chain(before.recent.iter().cloned()).take(MOST).take_while(|event| {
            bytes += event.write().to_string().len();
            bytes <= MOST_BYTES
        });
        let recent = recent.collect();
        Self { recent, ..self }
    }

    /// What the next report is compared with: the report without what only readers need.
    pub fn remembered(&self) -> Value {
        let findings = self.findings.iter().filter(|finding| finding.counts).map(|finding| DriftFinding {
            evidence: Vec::new(),
            fix: None,
            rule: String::new(),
            ..finding.clone()
        });
        let health =
            self.health.iter().map(|object| UnhealthyObject { causes: Vec::new(), ..object.clone() });
        let short = Self {
            metadata: self.metadata.clone(),
            summary: self.summary.clone(),
            findings: findings.collect(),
            health: health.collect(),
            pauses: self.pauses.clone(),
            recent: self.recent.clone(),
            ..Self::default()
        };
        short.to_json()
    }
}

/// What came and what went, as far as both reports are complete.
fn changes(before: &DriftReport, after: &DriftReport, now: Timestamp) -> Vec<RecentEvent> {
    let mut events = Vec::new();
    if is_complete(before) && is_complete(after) {
        let (old, new) = (counting(before), counting(after));
        for (key, finding) in &new {
            if !old.contains_key(key) {
                let fields = finding.fields.first().map(|field| format!(" {field}")).unwrap_or_default();
                let text = format!("{} {} {}{fields}", finding.class, finding.kind, finding.name);
                let at = finding.since.filter(|since| *since <= now).unwrap_or(now);
                events.push(event(at, "drift", false, &finding.key(), &finding.class, &finding.actor, &text));
            }
        }
        for (key, finding) in &old {
            if !new.contains_key(key) {
                let text = format!("{} {} {} is gone", finding.class, finding.kind, finding.name);
                events.push(event(now, "drift", true, &finding.key(), &finding.class, "", &text));
            }
        }
    }
    let by_key = |report: &DriftReport| -> BTreeMap<ObjectKey, UnhealthyObject> {
        report.health.iter().map(|object| (object.key(), object.clone())).collect()
    };
    let (old, new) = (by_key(before), by_key(after));
    for (key, object) in &new {
        if old.get(key).is_none_or(|known| known.status != object.status || known.stuck != object.stuck) {
            let state = if object.stuck { "stuck" } else { object.status.as_str() };
            let text = format!("{} {} became {state}: {}", object.kind, object.name, object.message);
            let at = object.since.filter(|since| *since <= now && !object.stuck).unwrap_or(now);
            events.push(event(at, "health", false, key, &object.status, "", &text));
        }
    }
    for (key, object) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        let text = format!("{} {} is no longer {}", object.kind, object.name, unwell(object));
        events.push(event(now, "health", true, key, &object.status, "", &text));
    }
    pauses(&before.pauses, &after.pauses, now, &mut events);
    events
}

fn unwell(object: &UnhealthyObject) -> &str {
    if object.stuck || object.status.is_empty() { "unhealthy" } else { &object.status }
}

fn pauses(before: &[DriftPause], after: &[DriftPause], now: Timestamp, events: &mut Vec<RecentEvent>) {
    let key_of = |pause: &DriftPause| object_key(&pause.group, &pause.kind, &pause.namespace, &pause.name);
    let has = |list: &[DriftPause], key: &ObjectKey| list.iter().any(|pause| key_of(pause) == *key);
    for pause in after {
        let key = key_of(pause);
        if !has(before, &key) {
            let text = format!("{} {} was paused: {}", pause.kind, pause.name, pause.reason);
            events.push(event(now, "pause", false, &key, "", &pause.by, &text));
        }
    }
    for pause in before {
        let key = key_of(pause);
        if !has(after, &key) {
            let text = format!("the pause of {} {} ended", pause.kind, pause.name);
            events.push(event(now, "pause", true, &key, "", "", &text));
        }
    }
}

fn event(
    at: Timestamp,
    kind: &str,
    is_over: bool,
    key: &ObjectKey,
    class: &str,
    actor: &str,
    text: &str,
) -> RecentEvent {
    RecentEvent {
        at,
        what: kind.to_owned(),
        over: is_over,
        group: key.group.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace_or_empty().to_owned(),
        name: key.name.clone(),
        class: class.to_owned(),
        actor: cut(actor),
        text: cut(text),
    }
}

/// The beginning of a text, on one line.
fn cut(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}

impl RecentEvent {
    /// A sync that ended.
    pub fn sync(at: Timestamp, has_failed: bool, actor: &str, text: &str) -> Self {
        let what = if has_failed { "sync-failed" } else { "sync" };
        Self { at, what: what.to_owned(), over: true, actor: cut(actor), text: cut(text), ..Self::default() }
    }

    /// The key of the object; `None` if it is about the whole app.
    pub fn key(&self) -> Option<ObjectKey> {
        (!self.kind.is_empty()).then(|| object_key(&self.group, &self.kind, &self.namespace, &self.name))
    }
}

/// True if the report has every finding that counts.
fn is_complete(report: &DriftReport) -> bool {
    let listed = report.findings.iter().filter(|finding| finding.counts).count();
    i64::try_from(listed).is_ok_and(|listed| listed >= report.summary.counted)
}

/// Findings that count, by object and class: another value of the same field is no news.
fn counting(report: &DriftReport) -> BTreeMap<Key, DriftFinding> {
    let counting = report.findings.iter().filter(|finding| finding.counts);
    counting.map(|finding| ((finding.key(), finding.class.clone()), finding.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Findings as `class name`, health as `status name`, pauses as names.
    fn report(findings: &[&str], health: &[&str], pauses: &[&str]) -> DriftReport {
        let object =
            |name: &str| json!({"group": "apps", "kind": "Deployment", "namespace": "pay", "name": name});
        let findings: Vec<Value> = findings
            .iter()
            .map(|text| {
                let (class, name) = text.split_once(' ').unwrap();
                let mut finding = object(name);
                finding["class"] = json!(class);
                finding["counts"] = json!(true);
                finding["actor"] = json!("alice");
                finding["fields"] = json!(["/spec/replicas"]);
                finding
            })
            .collect();
        let health: Vec<Value> = health
            .iter()
            .map(|text| {
                let (status, name) = text.split_once(' ').unwrap();
                let mut health = object(name);
                health["status"] = json!(status);
                health["message"] = json!("crashes\nagain");
                health
            })
            .collect();
        let pauses: Vec<Value> = pauses.iter().map(|name| object(name)).collect();
        DriftReport::from_json(&json!({
            "metadata": {"name": "a"}, "summary": {"counted": findings.len(), "explained": 0, "worst": ""},
            "findings": findings, "health": health, "pauses": pauses,
        }))
        .unwrap()
    }

    fn texts(report: &DriftReport) -> Vec<String> {
        report.recent.iter().map(|event| format!("{} {}", event.what, event.text)).collect()
    }

    #[test]
    fn what_came_and_what_went() {
        let check = |before: &DriftReport, after: DriftReport, expected: &[&str]| {
            assert_eq!(texts(&after.with_recent(Some(before), [], at(9))), expected);
        };
        let nothing = report(&[], &[], &[]);
        let edit = || report(&["LiveEdit web"], &[], &[]);
        check(&nothing, report(&[], &[], &[]), &[]);
        check(&nothing, edit(), &["drift LiveEdit Deployment web /spec/replicas"]);
        check(&edit(), edit(), &[]);
        check(&edit(), report(&[], &[], &[]), &["drift LiveEdit Deployment web is gone"]);
        let ill = || report(&[], &["Degraded web"], &[]);
        check(&nothing, ill(), &["health Deployment web became Degraded: crashes again"]);
        check(&ill(), ill(), &[]);
        check(&ill(), report(&[], &[], &[]), &["health Deployment web is no longer Degraded"]);
        check(&nothing, report(&[], &[], &["web"]), &["pause Deployment web was paused:"]);
        check(
            &report(&[], &[], &["web"]),
            report(&[], &[], &[]),
            &["pause the pause of Deployment web ended"],
        );
        // A report that could not list all findings proves no end.
        let mut cut = report(&["LiveEdit web"], &[], &[]);
        cut.findings.clear();
        check(&edit(), cut, &[]);
    }

    #[test]
    fn entries_are_kept_up_to_a_limit_and_come_back_from_the_cluster() {
        let mut now = report(&[], &[], &[]);
        for round in 0..300 {
            let next =
                if round % 2 == 0 { report(&["LiveEdit web"], &[], &[]) } else { report(&[], &[], &[]) };
            let before = DriftReport::from_json(&now.remembered()).unwrap();
            let sync = RecentEvent::sync(at(round), false, "plumb", &"healed ".repeat(100));
            now = next.with_recent(Some(&before), [sync], at(round));
        }
        assert!(now.recent.len() <= MOST && now.recent.len() > 40, "{} entries", now.recent.len());
        let bytes: usize = now.recent.iter().map(|event| event.write().to_string().len()).sum();
        assert!(bytes <= MOST_BYTES, "{bytes} bytes");
        assert!(now.recent.is_sorted_by_key(|event| std::cmp::Reverse(event.at)));
        let many: Vec<String> = (0..400).map(|n| format!("Orphan o{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let at_once = report(&many, &[], &[]).with_recent(None, [], at(1));
        assert_eq!(at_once.recent.len(), MOST_AT_ONCE);
    }

    #[test]
    fn what_happened_is_no_reason_to_write() {
        let plain = report(&["LiveEdit web"], &[], &[]);
        let with = plain.clone().with_recent(None, [], at(1));
        assert_eq!(plain.content(), with.content());
        assert_eq!(plain.findings_content(), with.findings_content());
        assert_eq!(plain.counting_content(), with.counting_content());
        assert_ne!(plain.to_json(), with.to_json());
    }
}
