//! Lists over all apps: what happened lately, findings by class and kind, orphans.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_core::drift::DriftClass;
use plumb_crd::DriftReport;
use serde_json::{Value, json};

use crate::object_ref::object_ref;
use crate::row::Row;
use crate::timeline::recent_state;
use crate::trouble::{Sort, Trouble, short, time};

/// Most places that a group of findings names.
const MOST_PLACES: usize = 200;
/// Most entries of a list.
const MOST: usize = 2000;

/// What happened last to each of these apps, the latest first.
pub(crate) fn lately<'r>(rows: impl Iterator<Item = &'r Row>, most: usize) -> Vec<Value> {
    let mut all: Vec<(Timestamp, Value)> = Vec::new();
    for row in rows {
        let app = json!([row.id.namespace, row.id.name]);
        if let Some(at) = row.operation_since {
            // That it healed something says more than that it succeeded.
            let heal =
                row.healed.as_ref().filter(|(healed, _)| healed.duration_since(at).as_secs().abs() <= 1);
            let text = heal.map_or_else(
                || format!("sync {} {}", row.operation.to_lowercase(), row.revision),
                |(_, text)| text.clone(),
            );
            let entry = json!({"at": time(Some(at)), "app": app, "kind": "sync", "state": row.operation,
                "text": text, "actor": row.operation_by});
            all.push((at, entry));
        }
        for trouble in row.troubles.iter().filter(|trouble| matches!(trouble.sort, Sort::Drift | Sort::Ill)) {
            let Some(at) = trouble.since else { continue };
            let object =
                trouble.object.as_ref().map(|key| format!("{} {}", key.kind, key.name)).unwrap_or_default();
            let entry = json!({"at": time(Some(at)), "app": app, "kind": trouble.sort.name(), "state": trouble.class,
                "text": format!("{} {object}", trouble.class), "actor": trouble.actor});
            all.push((at, entry));
        }
    }
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    all.into_iter().take(most).map(|(_, entry)| entry).collect()
}

/// What happened, over all apps.
pub fn activity<'r>(
    rows: impl Iterator<Item = &'r Row>,
    reports: impl Iterator<Item = (&'r Row, &'r DriftReport)>,
) -> Value {
    let mut entries = lately(rows, MOST);
    // A sync, and what is still so, is there once. What ends in the same second is another thing.
    let mut known: BTreeSet<(i64, String, String)> = BTreeSet::new();
    for entry in &entries {
        let (at, kind) = (entry["at"].as_i64().unwrap_or(0), entry["kind"].as_str().unwrap_or_default());
        known.insert((at, entry["app"].to_string(), kind.to_owned()));
        if kind == "sync" {
            // The report may have read the end of the sync a moment later.
            known.insert((at + 1, entry["app"].to_string(), kind.to_owned()));
        }
    }
    for (row, report) in reports {
        let app = json!([row.id.namespace, row.id.name]);
        let fresh = report.recent.iter().filter(|event| {
            let (kind, state) = recent_state(event);
            // What is still so is in the lists of its row by another name.
            let kind = if kind == "health" { "ill" } else { kind };
            let has_ended = state == "ok" && kind != "sync";
            has_ended || !known.contains(&(event.at.as_second(), app.to_string(), kind.to_owned()))
        });
        entries.extend(fresh.map(|event| {
            let (kind, state) = recent_state(event);
            json!({"at": time(Some(event.at)), "app": app, "kind": kind, "state": state, "text": short(&event.text),
                   "actor": short(&event.actor)})
        }));
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry["at"].as_i64()));
    entries.truncate(MOST);
    json!({"entries": entries})
}

/// All findings by class and kind. Those that count come first, the gravest class first.
pub fn doctor<'r>(reports: impl Iterator<Item = (&'r Row, &'r DriftReport)>) -> Value {
    struct Group {
        apps: BTreeSet<String>,
        places: Vec<Value>,
        findings: usize,
        fix: String,
        patches: usize,
    }
    let mut groups: BTreeMap<(bool, u8, String, String), Group> = BTreeMap::new();
    for (row, report) in reports {
        for finding in &report.findings {
            let class = DriftClass::ALL.into_iter().find(|class| class.name() == finding.class);
            let gravity = u8::MAX - class.map_or(0, DriftClass::severity);
            let group = (!finding.counts, gravity, finding.class.clone(), finding.kind.clone());
            let group = groups.entry(group).or_insert_with(|| Group {
                apps: BTreeSet::new(),
                places: Vec::new(),
                findings: 0,
                fix: finding.fix.as_ref().map(|fix| short(&fix.text)).unwrap_or_default(),
                patches: 0,
            });
            group.findings += 1;
            group.apps.insert(row.id.to_string());
            let patch = finding.fix.as_ref().map_or("", |fix| fix.patch.as_str());
            group.patches += usize::from(!patch.is_empty());
            if group.places.len() < MOST_PLACES {
                group.places.push(json!({
                    "app": [row.id.namespace, row.id.name], "object": object_ref(&finding.key()),
                    "fields": finding.fields, "actor": short(&finding.actor), "since": time(finding.since),
                    "text": finding.evidence.first().map(|text| short(text)), "patch": patch,
                }));
            }
        }
    }
    let groups = groups.into_iter().map(|((quiet, _, class, kind), group)| {
        json!({"class": class, "kind": kind, "counts": !quiet, "findings": group.findings,
               "apps": group.apps.len(), "fix": group.fix, "patches": group.patches, "places": group.places})
    });
    json!({"groups": groups.collect::<Vec<_>>()})
}

/// The objects that left Git.
pub fn orphans<'r>(reports: impl Iterator<Item = (&'r Row, &'r DriftReport)>) -> Value {
    let mut found = Vec::new();
    for (row, report) in reports {
        let orphans = report.findings.iter().filter(|finding| finding.class == "Orphan");
        found.extend(orphans.map(|finding| {
            json!({"app": [row.id.namespace, row.id.name], "object": object_ref(&finding.key()),
                   "since": time(finding.since), "counts": finding.counts,
                   "evidence": finding.evidence.iter().map(|text| short(text)).collect::<Vec<_>>(),
                   "fix": finding.fix.as_ref().map(|fix| short(&fix.text))})
        }));
    }
    found.truncate(MOST);
    json!({"orphans": found})
}

/// What the apps of one cluster, repository or project say of it.
#[derive(Default)]
struct Used {
    apps: usize,
    compared: usize,
    failing: usize,
    since: Option<Timestamp>,
    text: String,
}

impl Used {
    fn note(&mut self, row: &Row, trouble: Option<&Trouble>) {
        self.apps += 1;
        self.compared += usize::from(!row.is_unknown() && trouble.is_none());
        let Some(trouble) = trouble else { return };
        self.failing += 1;
        if self.since.is_none()
            || trouble.since.is_some_and(|since| self.since.is_some_and(|first| since < first))
        {
            self.since = trouble.since;
        }
        self.text.clone_from(&trouble.text);
    }

    fn to_json(&self) -> Value {
        json!({"apps": self.apps, "compared": self.compared, "failing": self.failing, "since": time(self.since),
               "text": self.text})
    }
}

/// The address of a repository without what Git treats as equal.
fn plain_url(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url)
}

/// How clusters, repositories and projects fare, as far as their apps tell: plumb connects when an app needs it, and the app
/// tells what failed.
pub fn failures<'r>(rows: impl Iterator<Item = &'r Row>) -> Value {
    let mut clusters: BTreeMap<&str, Used> = BTreeMap::new();
    let mut repositories: BTreeMap<&str, Used> = BTreeMap::new();
    let mut projects: BTreeMap<&str, Used> = BTreeMap::new();
    for row in rows {
        let says = |names: &dyn Fn(&str) -> bool| {
            row.troubles.iter().find(|trouble| trouble.class == "ComparisonError" && names(&trouble.text))
        };
        let url = plain_url(&row.repo);
        let is_away = |text: &str| text.starts_with("cluster ") && text.contains(" cannot be reached");
        clusters.entry(&row.cluster).or_default().note(row, says(&is_away));
        projects.entry(&row.project).or_default().note(row, None);
        if !url.is_empty() {
            repositories.entry(url).or_default().note(row, says(&|text| text.contains(url)));
        }
    }
    let shown = |used: BTreeMap<&str, Used>| -> Value {
        used.into_iter().map(|(name, used)| (name.to_owned(), used.to_json())).collect()
    };
    json!({"clusters": shown(clusters), "repositories": shown(repositories), "projects": shown(projects)})
}

#[cfg(test)]
mod tests {
    use plumb_crd::RecentEvent;

    use super::*;
    use crate::row::tests::{app, live_edit, report};

    #[test]
    fn findings_by_class_and_kind() {
        let mut quiet = live_edit();
        quiet["counts"] = json!(false);
        quiet["class"] = json!("SchemaDefault");
        let mut orphan = live_edit();
        orphan["class"] = json!("Orphan");
        let reports = ["a", "b"].map(|name| {
            let report = report(name, json!([live_edit(), quiet, orphan]), json!([]));
            (Row::of(&app(name, json!({})), Some(&report), "prod"), report)
        });
        let pairs = || reports.iter().map(|(row, report)| (row, report));
        let groups = doctor(pairs())["groups"].as_array().cloned().unwrap();
        let mut shown: Vec<String> = groups
            .iter()
            .map(|group| format!("{} {} {}", group["class"], group["findings"], group["apps"]))
            .collect();
        assert_eq!(shown.pop().as_deref(), Some("\"SchemaDefault\" 2 2"), "what does not count comes last");
        shown.sort();
        assert_eq!(shown, ["\"LiveEdit\" 2 2", "\"Orphan\" 2 2"]);
        assert_eq!(orphans(pairs())["orphans"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_heal_and_what_it_ended_are_in_the_activity() {
        let at = "2026-11-15T03:00:01Z";
        let status = json!({"operationState": {"operation": {"sync": {}, "initiatedBy": {"automated": true}},
            "phase": "Succeeded", "message": "successfully synced", "startedAt": "2026-11-15T03:00:00Z", "finishedAt": at}});
        let mut report = report("a", json!([]), json!([]));
        let at = at.parse().unwrap();
        report.recent = vec![
            RecentEvent::sync(at, false, "plumb", "healed: successfully synced"),
            RecentEvent {
                at,
                what: "drift".to_owned(),
                over: true,
                text: "LiveEdit Deployment payments is gone".to_owned(),
                ..RecentEvent::default()
            },
        ];
        let row = Row::of(&app("a", status), Some(&report), "prod");
        let shown = activity([&row].into_iter(), [(&row, &report)].into_iter());
        let texts: Vec<&str> =
            shown["entries"].as_array().unwrap().iter().filter_map(|entry| entry["text"].as_str()).collect();
        assert_eq!(texts, ["healed: successfully synced", "LiveEdit Deployment payments is gone"]);
    }

    #[test]
    fn what_apps_say_of_clusters_and_repositories() {
        let row = |name: &str, message: &str| {
            let conditions = json!([{"type": "ComparisonError", "message": message,
                                     "lastTransitionTime": "2026-11-15T03:00:00Z"}]);
            let (sync, conditions) =
                if message.is_empty() { ("Synced", json!([])) } else { ("Unknown", conditions) };
            let status = json!({"sync": {"status": sync}, "conditions": conditions});
            Row::of(&app(name, status), None, "prod")
        };
        let check = |rows: &[Row], expected: [[i64; 3]; 2]| {
            let found = failures(rows.iter());
            let numbers =
                |used: &Value| ["apps", "compared", "failing"].map(|name| used[name].as_i64().unwrap());
            let shown =
                [&found["clusters"]["prod"], &found["repositories"]["https://git.example/x"]].map(numbers);
            assert_eq!(shown, expected, "{found}");
        };
        let away = "cluster https://10.0.0.2 cannot be reached: connection refused";
        let fetch = "cannot fetch https://git.example/x.git: 503";
        check(&[row("a", ""), row("b", away)], [[2, 1, 1], [2, 1, 0]]);
        check(&[row("a", fetch), row("b", "cannot render: values.yaml:12")], [[2, 0, 0], [2, 0, 1]]);
    }
}
