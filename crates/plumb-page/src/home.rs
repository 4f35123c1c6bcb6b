//! The first screen: what is wrong, in order, and what happened lately.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plumb_crd::drift_report::DriftPause;
use serde_json::{Value, json};

use crate::lists::lately;
use crate::row::Row;
use crate::trouble::{Sort, Trouble, pause_json, time};

/// Most cards on the first screen; the rest is counted.
const MOST_CARDS: usize = 25;
/// A running sync is a trouble after this time.
const HANGS_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// A pause is shown if it ends within this time, or has no end.
const ENDS_SOON: SignedDuration = SignedDuration::from_mins(30);
/// Troubles of one class and kind in more apps than this are one card.
const GROUPED_FROM: usize = 4;

/// What the first screen shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Home(Value);

impl Home {
    /// As the page reads it.
    pub fn into_json(self) -> Value {
        self.0
    }
}

struct Card<'r> {
    row: &'r Row,
    trouble: &'r Trouble,
}

impl Card<'_> {
    /// Troubles with the same cause in many apps are one thing: drift of one class and kind, and the same sentence about a
    /// cluster or a repository. Each illness is its own: one cause is not known to be that of the other.
    fn cause(&self) -> (Sort, &str, &str) {
        let kind = self.trouble.object.as_ref().map_or("", |key| key.kind.as_str());
        let what = if self.trouble.sort == Sort::Condition { self.trouble.text.as_str() } else { kind };
        (self.trouble.sort, &self.trouble.class, what)
    }

    /// In how many apps a cause must be to be one card.
    fn grouped_from(&self) -> usize {
        match self.trouble.sort {
            Sort::Drift => GROUPED_FROM,
            Sort::Condition => 2,
            Sort::Ill | Sort::Operation | Sort::Deletion => usize::MAX,
        }
    }

    fn to_json(&self, more: usize) -> Value {
        let mut card = self.trouble.to_json();
        card["app"] = json!([self.row.id.namespace, self.row.id.name]);
        card["cluster"] = json!(self.row.cluster);
        card["project"] = json!(self.row.project);
        card["revision"] = json!(self.row.revision);
        card["more"] = json!(more);
        if card["class"] == "Running" {
            card["class"] = json!("SyncHangs");
        }
        card
    }
}

/// The first screen of these rows.
pub fn home<'r>(rows: impl Iterator<Item = &'r Row> + Clone, now: Timestamp) -> Home {
    let is_wrong = |trouble: &&Trouble| {
        trouble.class != "Running"
            || trouble.since.is_some_and(|since| now.duration_since(since) > HANGS_AFTER)
    };
    let mut cards: Vec<Card<'_>> = Vec::new();
    let (mut n_apps, mut n_wrong) = (0_usize, 0_usize);
    let mut explained = 0;
    let (mut n_unknown, mut n_busy) = (0_usize, 0_usize);
    for row in rows.clone() {
        n_apps += 1;
        explained += row.explained;
        let before = cards.len();
        // One card per app and sort: the others of the app are a number on it.
        for sort in [Sort::Ill, Sort::Operation, Sort::Condition, Sort::Drift, Sort::Deletion] {
            let worst = row.troubles.iter().filter(is_wrong).find(|trouble| trouble.sort == sort);
            cards.extend(worst.map(|trouble| Card { row, trouble }));
        }
        let is_fine = cards.len() == before;
        n_wrong += usize::from(!is_fine);
        let is_busy = row.health == "Progressing" || row.operation == "Running";
        n_unknown += usize::from(is_fine && row.is_unknown());
        n_busy += usize::from(is_fine && !row.is_unknown() && is_busy);
    }
    let calm = rows.clone().filter_map(|row| row.mended).max();
    cards.sort_by_key(|card| {
        let since = card.trouble.since.unwrap_or(Timestamp::MAX);
        (card.trouble.sort, u8::MAX - card.trouble.gravity, since)
    });
    let groups = grouped(cards);
    let n_things = groups.len();
    let shown: Vec<Value> = groups.iter().take(MOST_CARDS).map(|group| shown(group)).collect();
    Home(json!({
        "now": now.as_second(),
        "apps": n_apps, "wrong": n_wrong, "things": n_things, "explained": explained,
        "unknown": n_unknown, "busy": n_busy, "calm": time(calm),
        "cards": shown, "pauses": pauses(rows.clone(), now), "lately": lately(rows, 6),
    }))
}

/// Cards of one cause in many apps become one.
fn grouped(cards: Vec<Card<'_>>) -> Vec<Vec<Card<'_>>> {
    let mut count: BTreeMap<(Sort, String, String), usize> = BTreeMap::new();
    let cause = |card: &Card<'_>| {
        let (sort, class, kind) = card.cause();
        (sort, class.to_owned(), kind.to_owned())
    };
    for card in &cards {
        *count.entry(cause(card)).or_default() += 1;
    }
    let mut groups: Vec<Vec<Card<'_>>> = Vec::new();
    let mut place: BTreeMap<(Sort, String, String), usize> = BTreeMap::new();
    for card in cards {
        let cause = cause(&card);
        let is_many = count.get(&cause).is_some_and(|n| *n >= card.grouped_from());
        if is_many && let Some(group) = place.get(&cause).and_then(|at| groups.get_mut(*at)) {
            group.push(card);
            continue;
        }
        place.insert(cause, groups.len());
        groups.push(vec![card]);
    }
    groups
}

fn shown(group: &[Card<'_>]) -> Value {
    let Some(first) = group.first() else { return Value::Null };
    let same = |trouble: &&Trouble| trouble.sort == first.trouble.sort;
    let more = first.row.troubles.iter().filter(same).count().saturating_sub(1);
    let mut card = first.to_json(if first.trouble.sort == Sort::Drift {
        usize::try_from(first.row.counted).unwrap_or(0).saturating_sub(1).max(more)
    } else {
        more
    });
    if group.len() > 1 {
        let apps: Vec<Value> =
            group.iter().take(12).map(|card| json!([card.row.id.namespace, card.row.id.name])).collect();
        card["apps"] = json!(apps);
        card["count"] = json!(group.len());
    }
    card
}

fn pauses<'r>(rows: impl Iterator<Item = &'r Row> + Clone, now: Timestamp) -> Vec<Value> {
    let soon = now.checked_add(ENDS_SOON).unwrap_or(Timestamp::MAX);
    let holds = |pause: &&DriftPause| pause.until.is_none_or(|until| until > now);
    let mut of_objects: Vec<Value> = Vec::new();
    for row in rows.clone() {
        of_objects.extend(row.object_pauses.iter().filter(holds).map(|pause| {
            let mut entry = pause_json(pause);
            entry["app"] = json!([row.id.namespace, row.id.name]);
            entry["soon"] = json!(pause.until.is_some_and(|until| until < soon));
            entry
        }));
    }
    let paused = rows.filter(|row| row.paused_until.is_some_and(|until| until > now));
    let mut paused: Vec<&Row> = paused.collect();
    paused.sort_by_key(|row| row.paused_until);
    let entry = |row: &Row| {
        json!({
            "app": [row.id.namespace, row.id.name], "by": row.paused_by, "reason": row.pause_reason,
            "until": time(row.paused_until), "soon": row.paused_until.is_some_and(|until| until < soon),
        })
    };
    let whole: Vec<Value> = paused.into_iter().map(entry).collect();
    whole.into_iter().chain(of_objects).take(MOST_CARDS).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use plumb_crd::RecentEvent;

    use super::*;
    use crate::row::tests::{app, live_edit, report};
    use crate::view::View;

    #[expect(clippy::needless_pass_by_value, reason = "a table of cases is shorter so")]
    fn check(rows: &[Row], expected: Expect) {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let home = home(rows.iter(), now).into_json();
        let mut text = format!("{} things, {} of {} apps\n", home["things"], home["wrong"], home["apps"]);
        for card in home["cards"].as_array().unwrap() {
            let count = if card["count"].is_null() { String::new() } else { format!(" x{}", card["count"]) };
            let _ = writeln!(text, "{} {} {}{count}", card["sort"], card["class"], card["app"][1]);
        }
        expected.assert_eq(&text);
    }

    fn row(name: &str, status: Value, findings: Value, health: Value) -> Row {
        Row::of(&app(name, status), Some(&report(name, findings, health)), "prod")
    }

    #[test]
    fn illness_first_then_syncs_then_drift() {
        let synced = || json!({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}});
        let running = |since: &str| {
            json!({"sync": {"status": "Synced"}, "operationState": {
                "operation": {"sync": {}}, "phase": "Running", "startedAt": since, "message": "waiting"}})
        };
        let rows = [
            row("drifted", json!({"sync": {"status": "OutOfSync"}}), json!([live_edit()]), json!([])),
            row("fine", synced(), json!([]), json!([])),
            row("hangs", running("2026-11-15T03:05:00Z"), json!([]), json!([])),
            row(
                "ill",
                synced(),
                json!([]),
                json!([{"kind": "Deployment", "name": "x", "status": "Degraded", "message": "crashes"}]),
            ),
            row("runs", running("2026-11-15T03:11:00Z"), json!([]), json!([])),
        ];
        check(
            &rows,
            expect![[r#"
                3 things, 3 of 5 apps
                "ill" "Degraded" "ill"
                "operation" "SyncHangs" "hangs"
                "drift" "LiveEdit" "drifted"
            "#]],
        );
    }

    #[test]
    fn what_is_not_known_is_not_fine() {
        let status =
            |sync: &str, health: &str| json!({"sync": {"status": sync}, "health": {"status": health}});
        let calm = |name: &str, status: Value| row(name, status, json!([]), json!([]));
        let rows = [
            calm("new", json!({})),
            calm("rolls", status("Synced", "Progressing")),
            calm("well", status("Synced", "Healthy")),
        ];
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let shown = home(rows.iter(), now).into_json();
        assert_eq!((&shown["things"], &shown["unknown"], &shown["busy"]), (&json!(0), &json!(1), &json!(1)));
        assert_eq!(shown["calm"], Value::Null, "no report remembers a trouble");
        let mut report = report("well", json!([]), json!([]));
        let event = |at: &str, over: bool| RecentEvent {
            at: at.parse().unwrap(),
            what: "drift".to_owned(),
            over,
            ..RecentEvent::default()
        };
        report.recent = vec![
            event("2026-11-15T02:00:00Z", false),
            event("2026-11-15T02:14:00Z", true),
            event("2026-11-15T01:00:00Z", true),
        ];
        let well = Row::of(&app("well", status("Synced", "Healthy")), Some(&report), "prod");
        assert_eq!(home([&well].into_iter(), now).into_json()["calm"], 1_794_708_840);
    }

    #[test]
    fn a_cluster_that_is_away_is_one_thing() {
        let lost = |name: &str, server: &str| {
            let message = format!("cluster {server} cannot be reached: connection refused");
            let status = json!({"sync": {"status": "Unknown"}, "conditions": [
                {"type": "ComparisonError", "message": message, "lastTransitionTime": "2026-11-15T03:00:00Z"}]});
            row(name, status, json!([]), json!([]))
        };
        let mut rows: Vec<Row> = (0..200).map(|n| lost(&format!("app-{n:03}"), "https://10.0.0.2")).collect();
        rows.push(lost("other", "https://10.0.0.3"));
        check(
            &rows,
            expect![[r#"
                2 things, 201 of 201 apps
                "condition" "ComparisonError" "app-000" x200
                "condition" "ComparisonError" "other"
            "#]],
        );
    }

    #[test]
    fn a_deletion_that_waits_is_a_thing() {
        let object = |name: &str, leaves: bool| {
            json!({"kind": "ConfigMap", "namespace": "pay", "name": name, "status": "OutOfSync",
                   "requiresPruning": leaves, "requiresDeletionConfirmation": true})
        };
        let automated = |prune: bool| {
            let mut app = app(
                "store",
                json!({"sync": {"status": "Synced"}, "resources": [object("stays", false), object("goes", true)]}),
            );
            let policy = app.spec.sync_policy.as_mut().and_then(|policy| policy.automated.as_mut());
            policy.unwrap().prune = Some(prune);
            app
        };
        let mut view = View::new(1);
        view.note_app(automated(true), "prod");
        let rows: Vec<Row> = view.rows().cloned().collect();
        check(
            &rows,
            expect![[r#"
                1 things, 1 of 1 apps
                "deletion" "Unconfirmed" "store"
            "#]],
        );
        // A sync that would delete most of an app waits although no object asks for it.
        let running = json!({"sync": {"status": "OutOfSync"}, "operationState": {"operation": {"sync": {}}, "phase": "Running",
            "startedAt": "2026-11-15T03:12:00Z", "message": "waiting for pruning confirmation of /ConfigMap/c-1 and 6 more resources"}});
        check(
            &[Row::of(&app("most", running), None, "prod")],
            expect![[r#"
                2 things, 1 of 1 apps
                "drift" "OutOfSync" "most"
                "deletion" "Unconfirmed" "most"
            "#]],
        );
        // Where plumb does not delete what leaves Git, nothing waits.
        check(
            &[Row::of(&automated(false), None, "prod")],
            expect![[r"
                0 things, 0 of 1 apps
            "]],
        );
    }

    #[test]
    fn a_paused_object_is_named() {
        let mut report = report("a", json!([]), json!([]));
        let pause = |kind: &str, until: &str| {
            let (kind, name, by) = (kind.to_owned(), "web".to_owned(), "bob".to_owned());
            DriftPause { kind, name, by, until: until.parse().ok(), ..DriftPause::default() }
        };
        report.pauses = vec![
            pause("Deployment", "2026-11-15T03:30:00Z"),
            pause("Service", "2026-11-15T03:00:00Z"),
            pause("Application", "2026-11-15T03:30:00Z"),
        ];
        let row = Row::of(&app("a", json!({})), Some(&report), "prod");
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let pauses = home([&row].into_iter(), now).into_json()["pauses"].clone();
        assert_eq!(pauses.as_array().map(Vec::len), Some(1), "{pauses}");
        assert_eq!((&pauses[0]["object"]["kind"], &pauses[0]["by"]), (&json!("Deployment"), &json!("bob")));
    }

    #[test]
    fn one_cause_in_many_apps_is_one_card() {
        let drifted =
            |name: &str| row(name, json!({"sync": {"status": "OutOfSync"}}), json!([live_edit()]), json!([]));
        let rows: Vec<Row> = ["a", "b", "c", "d", "e"].into_iter().map(drifted).collect();
        check(
            &rows,
            expect![[r#"
                1 things, 5 of 5 apps
                "drift" "LiveEdit" "a" x5
            "#]],
        );
        check(
            &rows[..2],
            expect![[r#"
                2 things, 2 of 2 apps
                "drift" "LiveEdit" "a"
                "drift" "LiveEdit" "b"
            "#]],
        );
    }
}
