//! One record per app: its state and what other parts of the engine ask about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use plumb_core::app::{App, AppId};
use plumb_core::drift::Finding;
use plumb_core::sync::{SiblingEnd, SiblingFacts};

use super::app_state::AppState;
use crate::apps::context::CompiledRules;
use crate::apps::followed_commits::{TrackedRevision, is_behind, shares};
use crate::apps::previous_report::PreviousReport;
use crate::config::settings::Settings;

/// A drift class, and whether its findings make an app `OutOfSync`.
pub(crate) type FindingKind = (&'static str, bool);

/// What is known about one app.
#[derive(Default)]
struct AppRecord {
    /// Only the worker that runs the app waits for this lock. Others use `try_lock`, or wait in a task of their own.
    state: Arc<tokio::sync::Mutex<AppState>>,
    /// The revisions that the app tracks, with the commits that they resolved to.
    tracked: Vec<TrackedRevision>,
    /// When the last look at Git was asked for, and how it ended.
    last_gather: Option<(Instant, SiblingEnd)>,
    /// How often its sources changed before they were gathered.
    restarts: u32,
    /// True if a prune of another app waited for this one in vain, and it has failed ever since.
    was_given_up: bool,
    /// Apps whose prunes wait for this one.
    waiting: BTreeSet<AppId>,
    finding_counts: BTreeMap<FindingKind, u64>,
    report: PreviousReport,
    /// Compiled once per spec and settings.
    rules: Option<Arc<CompiledRules>>,
}

impl AppRecord {
    /// What another app that is at these commits has to know before it prunes, since this moment.
    fn facts(&self, own: &[TrackedRevision], follows: &[u64], since: Instant) -> SiblingFacts {
        let last = self.last_gather.as_ref().filter(|(asked_at, _)| *asked_at >= since);
        SiblingFacts {
            is_at_same_commits: !is_behind(own, &self.tracked, follows),
            last: last.map(|(_, end)| end.clone()),
            restarts: self.restarts,
            was_given_up: self.was_given_up,
        }
    }
}

/// The records of all apps.
#[derive(Default)]
pub(crate) struct AppRecords(Mutex<HashMap<AppId, AppRecord>>);

impl AppRecords {
    /// The app is gone. Returns the apps that waited for it.
    pub(crate) fn remove(&self, app: &AppId) -> BTreeSet<AppId> {
        self.0.lock().remove(app).map(|record| record.waiting).unwrap_or_default()
    }

    /// What runs of the app keep.
    pub(crate) fn state(&self, app: &AppId) -> Arc<tokio::sync::Mutex<AppState>> {
        self.with(app, |record| Arc::clone(&record.state))
    }

    /// Sets the commits that the app was last gathered from.
    pub(crate) fn set_tracked(&self, app: &AppId, tracked: Vec<TrackedRevision>) {
        self.with(app, |record| record.tracked = tracked);
    }

    /// Those of the others, each with what its spec tracks, that track what this app tracks, and what is known of each since
    /// this moment. This app runs again when one of them that is not up to date has looked at Git, or is gone.
    pub(crate) fn siblings(
        &self,
        app: &AppId,
        others: impl Iterator<Item = (AppId, Vec<u64>)>,
        since: Instant,
    ) -> Vec<(AppId, SiblingFacts)> {
        // What the others track is worked out before the lock is taken.
        let others: Vec<(AppId, Vec<u64>)> = others.collect();
        let mut records = self.0.lock();
        let own = records.get(app).map(|record| record.tracked.clone()).unwrap_or_default();
        let siblings = others.into_iter().filter(|(_, follows)| shares(&own, follows));
        let facts = |(other, follows): (AppId, Vec<u64>)| {
            let record = records.entry(other.clone()).or_default();
            let facts = record.facts(&own, &follows, since);
            if !facts.is_at_same_commits {
                record.waiting.insert(app.clone());
            }
            (other, facts)
        };
        siblings.map(facts).collect()
    }

    /// Notes how a look at Git ended that was asked for at this moment. Returns the apps that wait for it.
    pub(crate) fn gather_ended(&self, app: &AppId, asked_at: Instant, end: SiblingEnd) -> BTreeSet<AppId> {
        self.with(app, |record| {
            record.was_given_up &= matches!(end, SiblingEnd::Failing(_));
            record.last_gather = Some((asked_at, end));
            std::mem::take(&mut record.waiting)
        })
    }

    /// Sets how often the sources of the app changed before they were gathered.
    pub(crate) fn set_restarts(&self, app: &AppId, restarts: u32) {
        self.with(app, |record| record.restarts = restarts);
    }

    /// The apps that wait for this one. They are told once.
    pub(crate) fn take_waiting(&self, app: &AppId) -> BTreeSet<AppId> {
        self.with(app, |record| std::mem::take(&mut record.waiting))
    }

    /// Notes that a prune waited for these apps in vain. While they go on failing, no prune waits for them as long.
    pub(crate) fn give_up(&self, apps: &[AppId]) {
        for app in apps {
            self.with(app, |record| record.was_given_up = true);
        }
    }

    /// Counts the findings of the app's last comparison.
    pub(crate) fn set_findings<'a>(&self, app: &AppId, findings: impl Iterator<Item = &'a Finding>) {
        let mut counts: BTreeMap<FindingKind, u64> = BTreeMap::new();
        for finding in findings {
            *counts.entry((finding.class.name(), finding.counts)).or_default() += 1;
        }
        self.with(app, |record| record.finding_counts = counts);
    }

    /// The findings of all apps together.
    pub(crate) fn finding_counts(&self) -> BTreeMap<FindingKind, u64> {
        let mut all: BTreeMap<FindingKind, u64> = BTreeMap::new();
        for (kind, count) in self.0.lock().values().flat_map(|record| &record.finding_counts) {
            *all.entry(*kind).or_default() += count;
        }
        all
    }

    /// The report of the app that an earlier process wrote.
    pub(crate) fn report<T>(&self, app: &AppId, read: impl FnOnce(&mut PreviousReport) -> T) -> T {
        self.with(app, |record| read(&mut record.report))
    }

    /// The app's ignore rules and those of the settings, compiled. Compiling happens outside of the lock: jq programs of
    /// one app must not delay the others.
    pub(crate) fn rules(&self, app: &App, settings: &Settings) -> Arc<CompiledRules> {
        let known = self.with(&app.id, |record| record.rules.clone());
        if let Some(rules) = known.filter(|rules| rules.are_of(app, settings)) {
            return rules;
        }
        let rules = Arc::new(CompiledRules::compile(app, settings));
        self.with(&app.id, |record| record.rules = Some(Arc::clone(&rules)));
        rules
    }

    fn with<T>(&self, app: &AppId, change: impl FnOnce(&mut AppRecord) -> T) -> T {
        let mut records = self.0.lock();
        if let Some(record) = records.get_mut(app) {
            return change(record);
        }
        change(records.entry(app.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    #[test]
    fn siblings_follow_the_same_revision_of_the_same_cluster() {
        let records = AppRecords::default();
        let set = |name: &str, cluster: &str, revision: &str, commit: &str| {
            let tracked = TrackedRevision::new(cluster, "r", revision, commit);
            let follows = vec![tracked.what()];
            records.set_tracked(&app(name), vec![tracked]);
            (app(name), follows)
        };
        let own = set("a", "in", "main", "2").0;
        let others = [
            set("same", "in", "main", "2"),
            set("pinned", "in", "v1", "1"),
            set("far", "out", "main", "1"),
            set("late", "in", "main", "1"),
            (app("new"), vec![TrackedRevision::new("in", "r", "main", "").what()]),
        ];
        let siblings = records.siblings(&own, others.iter().cloned(), Instant::now());
        let found: Vec<(&str, bool)> =
            siblings.iter().map(|(id, facts)| (id.name.as_str(), facts.is_at_same_commits)).collect();
        assert_eq!(found, [("same", true), ("late", false), ("new", false)]);
        assert!(records.siblings(&app("unknown"), others.iter().cloned(), Instant::now()).is_empty());
        for (name, is_waited_for) in [("same", false), ("late", true), ("new", true), ("far", false)] {
            assert_eq!(records.take_waiting(&app(name)).contains(&own), is_waited_for, "{name}");
        }
    }

    #[test]
    fn only_a_look_at_git_after_the_prune_began_to_wait_counts() {
        let records = AppRecords::default();
        let own = TrackedRevision::new("in", "r", "main", "2");
        let follows = vec![own.what()];
        records.set_tracked(&app("a"), vec![own]);
        let start = Instant::now();
        let later = start + std::time::Duration::from_secs(1);
        let facts = |since: Instant| {
            let siblings = records.siblings(&app("a"), std::iter::once((app("b"), follows.clone())), since);
            siblings.into_iter().next().unwrap().1
        };
        assert_eq!(facts(start).last, None);
        let failing = || SiblingEnd::Failing("network".to_owned());
        assert_eq!(records.gather_ended(&app("b"), start, failing()), BTreeSet::from([app("a")]));
        assert_eq!((facts(start).last, facts(later).last), (Some(failing()), None));
        records.give_up(&[app("b")]);
        records.gather_ended(&app("b"), later, failing());
        assert!(facts(later).was_given_up, "it fails on");
        records.gather_ended(&app("b"), later, SiblingEnd::Gathered);
        assert_eq!((facts(later).last, facts(later).was_given_up), (Some(SiblingEnd::Gathered), false));
        assert_eq!(
            records.remove(&app("b")),
            BTreeSet::from([app("a")]),
            "an app that is gone is not waited for"
        );
    }
}
