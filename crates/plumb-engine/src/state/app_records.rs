//! One record per app: its state and what other parts of the engine ask about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::app::{App, AppId};
use plumb_core::drift::Finding;

use super::app_state::AppState;
use crate::apps::context::CompiledRules;
use crate::apps::followed_commits::{TrackedRevision, is_behind};
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
    /// The revisions and commits for which another app waited in vain for this one.
    not_gathered: Vec<TrackedRevision>,
    finding_counts: BTreeMap<FindingKind, u64>,
    report: PreviousReport,
    /// Compiled once per spec and settings.
    rules: Option<Arc<CompiledRules>>,
}

/// The records of all apps.
#[derive(Default)]
pub(crate) struct AppRecords(Mutex<HashMap<AppId, AppRecord>>);

impl AppRecords {
    /// The app is gone.
    pub(crate) fn remove(&self, app: &AppId) {
        self.0.lock().remove(app);
    }

    /// What runs of the app keep.
    pub(crate) fn state(&self, app: &AppId) -> Arc<tokio::sync::Mutex<AppState>> {
        self.with(app, |record| Arc::clone(&record.state))
    }

    /// Sets the commits that the app was last gathered from.
    pub(crate) fn set_tracked(&self, app: &AppId, tracked: Vec<TrackedRevision>) {
        self.with(app, |record| record.tracked = tracked);
    }

    /// Those of the others, each with what its spec tracks, that track what this app tracks and have not been gathered
    /// since it moved.
    pub(crate) fn behind(
        &self,
        app: &AppId,
        others: impl Iterator<Item = (AppId, Vec<u64>)>,
    ) -> BTreeSet<AppId> {
        // What the others track is worked out before the lock is taken.
        let others: Vec<(AppId, Vec<u64>)> = others.collect();
        let records = self.0.lock();
        let tracked = |app: &AppId| records.get(app).map(|record| &*record.tracked).unwrap_or_default();
        let own = tracked(app);
        others
            .into_iter()
            .filter(|(other, follows)| {
                let given_up = records.get(other).map(|record| &*record.not_gathered).unwrap_or_default();
                let open: Vec<TrackedRevision> =
                    own.iter().filter(|revision| !given_up.contains(revision)).cloned().collect();
                is_behind(&open, tracked(other), follows)
            })
            .map(|(other, _)| other)
            .collect()
    }

    /// Notes that the others were not gathered in time at the commits that this app was gathered from. Until these
    /// revisions move, no app waits for them again.
    pub(crate) fn waited_in_vain(&self, app: &AppId, others: &BTreeSet<AppId>) {
        let own = self.with(app, |record| record.tracked.clone());
        for other in others {
            self.with(other, |record| {
                let moved = |known: &TrackedRevision| !own.iter().any(|own| own.is_same_revision(known));
                record.not_gathered.retain(moved);
                record.not_gathered.extend(own.iter().cloned());
            });
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

    #[test]
    fn apps_that_track_the_same_at_an_older_commit_are_behind() {
        let app = |name: &str| AppId { namespace: "argocd".into(), name: name.into() };
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
        let behind = |n: usize| records.behind(&own, others.iter().take(n).cloned());
        assert_eq!(behind(3), BTreeSet::new());
        assert_eq!(behind(5), BTreeSet::from([app("late"), app("new")]));
        assert!(records.behind(&app("unknown"), others.iter().cloned()).is_empty());

        // An app that is never gathered delays one prune of a commit.
        records.waited_in_vain(&own, &BTreeSet::from([app("late")]));
        assert_eq!(behind(5), BTreeSet::from([app("new")]));
        let second = set("b", "in", "main", "2").0;
        assert_eq!(records.behind(&second, others.iter().cloned()), BTreeSet::from([app("new")]));
        set("a", "in", "main", "3");
        assert!(behind(5).contains(&app("late")), "the next commit is waited for again");
        records.waited_in_vain(&own, &BTreeSet::from([app("late")]));
        assert_eq!(records.with(&app("late"), |record| record.not_gathered.len()), 1, "one commit is kept");
    }
}
