use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::app::{Automation, SelectedObject, Source};
use crate::plan::tests::fixture::{key, time};
use crate::status::SyncCode;
use crate::sync::OperationPhase;

/// A situation in words, and what is decided.
///
/// Words: `manual`, `prune`, `heal`, `empty`, `window`, `paused`, `unknown`; `last=PHASE` (this
/// revision was tried), `older=PHASE` (another was), `bare=PHASE` (without result), `irrelevant`. Items:
/// `red`, `green`, `extra`, `fixed` (red, cannot be healed), `moved`, `held` (paused), `behind`, `held-behind`, `hook`,
/// `left` (removed from Git, and the sync left it), `held-left`. `namespace` (the app is red for its namespace alone).
fn decided(words: &str) -> String {
    decided_with(words, &HealLedger::default(), now())
}

fn now() -> Timestamp {
    time("2026-11-15T12:00:00Z")
}

fn item(word: &str) -> Option<Item> {
    let item = |status, requires_pruning, can_heal| Item {
        key: key("ConfigMap", word),
        status,
        requires_pruning,
        can_heal,
        is_behind: matches!(word, "behind" | "held-behind" | "left" | "held-left"),
        moves_here: word == "moved",
        is_paused: matches!(word, "held" | "held-behind" | "held-left"),
        context: context("night-scaler"),
    };
    match word {
        "red" | "held" | "moved" => Some(item(Some(SyncCode::OutOfSync), false, true)),
        "fixed" | "behind" | "held-behind" => Some(item(Some(SyncCode::OutOfSync), false, false)),
        "green" => Some(item(Some(SyncCode::Synced), false, false)),
        "extra" | "left" | "held-left" => Some(item(Some(SyncCode::OutOfSync), true, true)),
        "hook" => Some(item(None, true, true)),
        _ => None,
    }
}

fn context(opponent: &str) -> HealContext {
    HealContext {
        desired: "git-1".to_owned(),
        opponent: Some(opponent.to_owned()),
        fields: vec!["/spec/replicas".to_owned()],
    }
}

fn decided_with(words: &str, ledger: &HealLedger, now: Timestamp) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let items: Vec<Item> = words.iter().filter_map(|word| item(word)).collect();
    let sources: Vec<Source> = Vec::new();
    let revisions = vec!["new".to_owned()];
    let phase = |name: &str| OperationPhase::from_name(name).expect("a phase");
    let last = |phase: OperationPhase, synced: Option<&str>| LastOperation {
        phase,
        message: "it broke".to_owned(),
        synced: synced.map(|revision| (Vec::new(), vec![revision.to_owned()])),
        heal_attempts: 2,
    };
    let last = value("last")
        .map(|name| last(phase(name), Some("new")))
        .or_else(|| value("older").map(|name| last(phase(name), Some("old"))))
        .or_else(|| value("bare").map(|name| last(phase(name), None)));
    let automation = Automation { prune: has("prune"), self_heal: has("heal"), allow_empty: has("empty") };
    let all_green = items.iter().all(|item| item.status != Some(SyncCode::OutOfSync));
    let status = match (has("unknown"), all_green) {
        (true, _) => SyncCode::Unknown,
        (false, true) if has("namespace") => SyncCode::OutOfSync,
        (false, true) => SyncCode::Synced,
        (false, false) => SyncCode::OutOfSync,
    };
    let verdict = decide(
        &Situation {
            automation: (!has("manual")).then_some(automation),
            window: has("window").then_some("closed"),
            paused_until: has("paused").then(|| time("2026-11-15T13:00:00Z")),
            status,
            items: &items,
            sources: &sources,
            revisions: &revisions,
            irrelevant_change: has("irrelevant"),
            last: last.as_ref(),
            kinds_changed: has("kinds"),
            ledger,
            limits: HealLimits::default(),
        },
        now,
    );
    let decision = match &verdict.decision {
        Decision::Sync(start) => {
            let names: Option<Vec<&str>> = start
                .selected
                .as_ref()
                .map(|selected| selected.iter().map(|object| object.name.as_str()).collect());
            let names = names.map_or("all".to_owned(), |names| names.join(","));
            format!("{:?} {names} prune={} attempt={}", start.kind, start.prune, start.heal_attempts)
        }
        Decision::Refuse(message) => format!("refuse: {message}"),
        Decision::Nothing(why) => format!("{why:?}"),
    };
    let wake = verdict.next_check.map(|at| format!(" (again at {at})")).unwrap_or_default();
    let stopped: Vec<String> =
        verdict.stopped.iter().map(|stopped| format!(" [{}]", stopped.message())).collect();
    format!("{decision}{wake}{}", stopped.concat())
}

#[test]
fn what_keeps_the_automation_still() {
    assert_eq!(decided("manual red"), "Manual");
    assert_eq!(decided("window red"), "Window");
    assert_eq!(decided("paused red"), "Paused (again at 2026-11-15T13:00:00Z)");
    assert_eq!(decided("green"), "InSync");
    assert_eq!(decided("unknown red"), "InSync");
    assert_eq!(decided("extra green"), "OnlyPrunes");
    assert_eq!(decided("extra red"), "NewRevision all prune=false attempt=0");
}

#[test]
fn a_revision_is_tried_once() {
    assert_eq!(decided("red"), "NewRevision all prune=false attempt=0");
    assert_eq!(decided("red prune green"), "NewRevision all prune=true attempt=0");
    assert_eq!(decided("red older=Failed"), "NewRevision all prune=false attempt=0");
    assert_eq!(decided("red older=Succeeded"), "NewRevision all prune=false attempt=0");
    assert_eq!(decided("red heal last=Failed"), "refuse: Failed last sync attempt to new: it broke");
    assert_eq!(decided("red heal last=Failed kinds"), "ChangedKind all prune=false attempt=0");
    assert_eq!(decided("red heal last=Succeeded kinds"), decided("red heal last=Succeeded"));
    assert_eq!(decided("red last=Error"), "refuse: Failed last sync attempt to new: it broke");
    assert_eq!(decided("red last=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("red irrelevant older=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("red bare=Error"), "refuse: Failed last sync attempt to new: it broke");
    assert_eq!(decided("red bare=Running"), "NewRevision all prune=false attempt=0");
}

#[test]
fn self_heal_takes_what_can_be_healed_and_counts_its_tries() {
    assert_eq!(decided("heal red green last=Succeeded"), "SelfHeal red prune=false attempt=3");
    assert_eq!(decided("heal fixed green last=Succeeded"), "NothingToHeal");
    assert_eq!(decided("heal held green last=Succeeded"), "NothingToHeal");
    assert_eq!(decided("heal red extra last=Succeeded"), "SelfHeal red prune=false attempt=3");
    assert_eq!(decided("heal prune red extra last=Succeeded"), "SelfHeal red,extra prune=true attempt=3");
    assert_eq!(decided("heal prune red hook last=Succeeded"), "SelfHeal red prune=true attempt=3");
    // Something that is not an object of the app is healed by a full sync.
    assert_eq!(decided("heal green namespace last=Succeeded"), "SelfHeal all prune=false attempt=3");
    assert_eq!(decided("green namespace last=Succeeded"), "NoSelfHeal");
}

#[test]
fn an_object_that_another_app_let_go_is_taken_over_without_self_heal() {
    assert_eq!(decided("moved green last=Succeeded"), "TakeOver moved prune=false attempt=0");
    assert_eq!(decided("moved green last=Failed"), "refuse: Failed last sync attempt to new: it broke");
}

#[test]
fn what_a_sync_left_out_is_caught_up_with_once_nothing_holds_it() {
    assert_eq!(decided("held-behind green last=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("behind green last=Succeeded"), "CatchUp behind prune=false attempt=0");
    assert_eq!(decided("behind red green last=Succeeded"), "CatchUp behind prune=false attempt=0");
    assert_eq!(decided("heal behind red green last=Succeeded"), "SelfHeal behind,red prune=false attempt=3");
    assert_eq!(decided("behind green last=Failed"), "refuse: Failed last sync attempt to new: it broke");
    // An object removed from Git meanwhile is pruned if the automation prunes; extra objects are ignored.
    assert_eq!(decided("prune held-left green last=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("prune left green last=Succeeded"), "CatchUp left prune=true attempt=0");
    assert_eq!(decided("prune left behind green last=Succeeded"), "CatchUp left,behind prune=true attempt=0");
    assert_eq!(decided("prune extra green last=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("left green last=Succeeded"), "OnlyPrunes");
    assert_eq!(decided("left red green last=Succeeded"), "NoSelfHeal");
    assert_eq!(decided("left behind green last=Succeeded"), "CatchUp behind prune=false attempt=0");
    assert_eq!(
        decided("prune left last=Succeeded"),
        "refuse: Skipping sync attempt to new: auto-sync will wipe out all resources"
    );
    // Something writes the old state again each time: that is a fight like any other.
    let ledger = HealLedger::default().healed(
        &key("ConfigMap", "behind"),
        &context("night-scaler"),
        &HealLimits::default(),
        now(),
    );
    assert_eq!(
        decided_with("behind green last=Succeeded", &ledger, now()),
        "NoSelfHeal (again at 2026-11-15T12:00:01Z)"
    );
}

#[test]
fn an_app_is_not_wiped_out_unless_it_may_be_empty() {
    let refusal = "refuse: Skipping sync attempt to new: auto-sync will wipe out all resources";
    assert_eq!(decided("prune extra"), refusal);
    assert_eq!(decided("prune extra hook"), refusal);
    assert_eq!(decided("prune extra green"), "NewRevision all prune=true attempt=0");
    assert_eq!(decided("prune empty extra"), "NewRevision all prune=true attempt=0");
}

/// Heals whenever it is decided, with an opponent that undoes it at once, until `until`.
fn fight(opponent: &str, until: &str) -> (HealLedger, Vec<String>) {
    let (red, limits) = (key("ConfigMap", "red"), HealLimits::default());
    let (mut ledger, mut now, until) = (HealLedger::default(), now(), time(until));
    let mut heals = Vec::new();
    while now < until {
        let decision = decided_with("heal red last=Succeeded", &ledger, now);
        if decision.starts_with("SelfHeal") {
            ledger = ledger.healed(&red, &context(opponent), &limits, now);
            heals.push(now.to_string());
        }
        if let HealState::Stopped(stopped) = ledger.state_of(&red, &context(opponent), &limits, now) {
            ledger = ledger.stopped(&stopped);
        }
        now += SignedDuration::from_millis(500);
    }
    (ledger, heals)
}

#[test]
fn a_tug_of_war_ends_after_five_rounds() {
    let (ledger, heals) = fight("night-scaler", "2026-11-15T12:30:00Z");
    assert_eq!(
        heals,
        [
            "2026-11-15T12:00:00Z",
            "2026-11-15T12:00:01Z",
            "2026-11-15T12:00:03Z",
            "2026-11-15T12:00:07Z",
            "2026-11-15T12:00:15Z",
        ]
    );
    let later = time("2026-11-15T18:00:00Z");
    assert_eq!(
        decided_with("heal red last=Succeeded", &ledger, later),
        "NothingToHeal [self-heal of ConfigMap prod/red stopped after 5 rounds: night-scaler keeps changing \
         /spec/replicas. Remove the field from Git, add an ignore rule, or stop the other writer]"
    );
    assert!(ledger.is_stopped(&key("ConfigMap", "red")));
}

#[test]
fn a_fight_goes_on_when_git_the_rules_or_the_opponent_change() {
    let (ledger, _) = fight("night-scaler", "2026-11-15T12:01:00Z");
    let (red, limits, at) = (key("ConfigMap", "red"), HealLimits::default(), time("2026-11-15T12:01:00Z"));
    let same = context("night-scaler");
    assert!(matches!(ledger.state_of(&red, &same, &limits, at), HealState::Stopped(_)));
    let git = HealContext { desired: "git-2".to_owned(), ..same.clone() };
    assert_eq!(ledger.state_of(&red, &git, &limits, at), HealState::Free);
    assert_eq!(ledger.state_of(&red, &context("someone"), &limits, at), HealState::Free);
    let unknown = HealContext { opponent: None, ..same.clone() };
    assert!(matches!(ledger.state_of(&red, &unknown, &limits, at), HealState::Stopped(_)));
    let by_hand = ledger.clone().forgotten([&red]);
    assert_eq!(by_hand.state_of(&red, &same, &limits, at), HealState::Free);
    let in_sync = ledger.clone().settled([&red]);
    assert_eq!(in_sync.state_of(&red, &same, &limits, at), HealState::Free);
    let later = time("2026-11-16T12:00:00Z");
    assert!(
        matches!(ledger.state_of(&red, &same, &limits, later), HealState::Stopped(_)),
        "time alone does not end a stop"
    );
}

/// A client chooses its name, so a new name for each change must not gain it more heals.
#[test]
fn changing_names_do_not_shorten_the_waits() {
    let (red, limits) = (key("ConfigMap", "red"), HealLimits::default());
    for n_names in [1, 2, 3, 1000] {
        let (mut ledger, mut at, mut n_heals) = (HealLedger::default(), now(), 0);
        for round in 0..3600 {
            let context = context(&format!("m{}", round % n_names));
            match ledger.state_of(&red, &context, &limits, at) {
                HealState::Free => {
                    n_heals += 1;
                    ledger = ledger.healed(&red, &context, &limits, at);
                }
                HealState::Stopped(stopped) => ledger = ledger.stopped(&stopped),
                HealState::BackOff { .. } => {}
            }
            at += SignedDuration::from_secs(1);
        }
        // Waits of 1, 2, 4 … seconds allow ten heals in each window of ten minutes. Without waits it would be 3600.
        assert!((5..=60).contains(&n_heals), "{n_names} names: {n_heals} heals in an hour");
    }
}

#[test]
fn the_waits_are_what_the_limits_say() {
    let (red, at) = (key("ConfigMap", "red"), now());
    let waits = |limits: &HealLimits| -> Vec<i64> {
        let (mut ledger, mut at) = (HealLedger::default(), at);
        (0..4)
            .map(|_| {
                ledger = std::mem::take(&mut ledger).healed(&red, &context("ada"), limits, at);
                let HealState::BackOff { until } = ledger.state_of(&red, &context("ada"), limits, at) else {
                    return 0;
                };
                let wait = until.duration_since(at).as_secs();
                at = until;
                wait
            })
            .collect()
    };
    let limits = |backoff, factor, longest| HealLimits {
        backoff: Duration::from_secs(backoff),
        factor,
        longest: Duration::from_secs(longest),
        rounds: 100,
        ..HealLimits::default()
    };
    assert_eq!(waits(&limits(1, 2, 300)), [1, 2, 4, 8]);
    assert_eq!(waits(&limits(2, 3, 20)), [2, 6, 18, 20]);
    assert_eq!(waits(&limits(30, 1, 300)), [30, 30, 30, 30]);
    assert_eq!(waits(&limits(0, 1, 300)), [0, 0, 0, 0]);
    // Longer than the window in which rounds are counted, and still kept.
    assert_eq!(waits(&limits(3600, 1, 7200)), [3600, 3600, 3600, 3600]);
    let long = limits(3600, 1, 7200);
    let ledger = HealLedger::default().healed(&red, &context("ada"), &long, at);
    let soon = at + SignedDuration::from_mins(59);
    assert!(matches!(ledger.state_of(&red, &context("ada"), &long, soon), HealState::BackOff { .. }));
}

#[test]
fn edits_far_apart_are_not_a_fight() {
    let (red, limits) = (key("ConfigMap", "red"), HealLimits::default());
    let mut ledger = HealLedger::default();
    let mut at = now();
    for _ in 0..20 {
        assert_eq!(ledger.state_of(&red, &context("ada"), &limits, at), HealState::Free);
        ledger = ledger.healed(&red, &context("ada"), &limits, at);
        at += SignedDuration::from_mins(3);
    }
    assert_eq!(ledger.heals(&red).map(|(_, heals)| heals.count()), Some(4), "old heals are dropped");
}

#[test]
fn waits_grow_up_to_the_longest() {
    let limits = HealLimits { rounds: 100, longest: Duration::from_secs(6), ..HealLimits::default() };
    let red = key("ConfigMap", "red");
    let mut ledger = HealLedger::default();
    let mut waits = Vec::new();
    let mut at = now();
    for _ in 0..6 {
        ledger = ledger.healed(&red, &context("ada"), &limits, at);
        match ledger.state_of(&red, &context("ada"), &limits, at) {
            HealState::BackOff { until } => {
                waits.push(until.duration_since(at).as_secs());
                at = until;
            }
            other => panic!("no back-off: {other:?}"),
        }
    }
    assert_eq!(waits, [1, 2, 4, 6, 6, 6]);
}

#[test]
fn a_selection_names_the_namespace() {
    let selected = SelectedObject::of(&key("ConfigMap", "a"));
    assert!(selected.means(&key("ConfigMap", "a")));
    assert!(!selected.means(&key("ConfigMap", "a").with_namespace(Some("other".to_owned()))));
}
