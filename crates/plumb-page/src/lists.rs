//! Lists over all apps: what happened lately, findings by class and kind, orphans.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::drift::DriftClass;
use plumb_crd::DriftReport;
use serde_json::{Value, json};

use crate::object_ref::object_ref;
use crate::row::Row;
use crate::trouble::{Sort, short, time};

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
            let entry = json!({"at": time(Some(at)), "app": app, "kind": "sync", "state": row.operation,
                "text": format!("sync {} {}", row.operation.to_lowercase(), row.revision), "actor": row.operation_by});
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
pub fn activity<'r>(rows: impl Iterator<Item = &'r Row>) -> Value {
    json!({"entries": lately(rows, MOST)})
}

/// All findings by class and kind. Those that count come first, the gravest class first.
pub fn doctor<'r>(reports: impl Iterator<Item = (&'r Row, &'r DriftReport)>) -> Value {
    struct Group {
        apps: std::collections::BTreeSet<String>,
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
                apps: std::collections::BTreeSet::new(),
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

#[cfg(test)]
mod tests {
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
}
