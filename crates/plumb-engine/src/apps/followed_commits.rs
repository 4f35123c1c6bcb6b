//! Objects that move from one app to another in one commit. The app that loses one must not prune it before the others
//! that follow the same branch were looked at: one of them may ask for it now, and then it moves instead.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_core::app::{AppId, ClusterRef};
use tracing::info;

use crate::apps::context::Ground;
use crate::apps::snapshot::Brief;
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;
use crate::queue::{Look, Trigger};
use crate::reconcile::run::Run;

/// How long a prune waits for the others: one of them may not be able to say what it asks for.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
/// How often the prune looks whether they are through.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Which commits each app was last gathered from. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commits(Arc<Mutex<HashMap<AppId, Vec<Followed>>>>);

/// A branch, tag or the like that an app follows, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// A number for the destination cluster, the repository and the revision as it is written.
    what: u64,
    commit: Box<str>,
}

impl Followed {
    pub(crate) fn new(cluster: &str, repository: &str, revision: &str, commit: &str) -> Self {
        Self { what: what(cluster, repository, revision), commit: commit.into() }
    }
}

impl Commits {
    pub(crate) fn set(&self, app: &AppId, followed: Vec<Followed>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app.clone(), followed);
    }

    pub(crate) fn forget(&self, app: &AppId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(app);
    }

    fn of(&self, app: &AppId) -> Vec<Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(app).cloned().unwrap_or_default()
    }

    /// Those of the others, with what each follows, that follow what this app follows and were not looked at since it
    /// moved, or not at all.
    fn behind(&self, app: &AppId, others: impl Iterator<Item = (AppId, Vec<u64>)>) -> BTreeSet<AppId> {
        let own = self.of(app);
        others
            .filter(|(other, follows)| {
                let mut shared = own.iter().filter(|own| follows.contains(&own.what)).peekable();
                let theirs = if shared.peek().is_some() { self.of(other) } else { Vec::new() };
                shared.any(|own| !theirs.contains(own))
            })
            .map(|(other, _)| other)
            .collect()
    }
}

/// What an app follows, as its spec says. `None` for an app that is not looked at.
fn follows(known: &Brief, cluster: impl Fn(&ClusterRef) -> Option<Arc<str>>) -> Option<Vec<u64>> {
    let (application, app) = (known.head.as_ref().ok()?, known.app.as_ref().ok()?);
    if app.skip_reconcile || application.is_terminating() {
        return None;
    }
    let cluster = cluster(&app.destination.cluster)?;
    let spec = &application.spec;
    let sources = spec.source.as_deref().into_iter().chain(&spec.sources);
    Some(sources.map(|source| what(&cluster, &source.repo_url, &source.target_revision)).collect())
}

fn what(cluster: &str, repository: &str, revision: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (cluster, repository, revision).hash(&mut hasher);
    hasher.finish()
}

impl Run<'_> {
    /// Does a sync that prunes wait for other apps to be looked at? They are asked for, and so is another run of this
    /// app.
    pub(crate) fn waits_for_others(
        &self,
        ground: &Ground,
        compared: &Compared,
        active: &mut ActiveOperation,
    ) -> bool {
        let prunes = active.asked.prune
            && active.state.is_none()
            && compared.verdicts.values().any(|verdict| verdict.requires_pruning);
        if !prunes {
            return false;
        }
        let app = &self.known.id;
        let known = self.engine.registry.all();
        let others = known.iter().filter(|other| other.id != *app).filter_map(|other| {
            let follows = follows(other, |cluster| self.engine.fleet.address(cluster))?;
            Some((other.id.clone(), follows))
        });
        let others = self.engine.commits.behind(app, others);
        if others.is_empty() {
            return false;
        }
        let is_first = active.waits_for_others.is_none();
        let since = *active.waits_for_others.get_or_insert_with(Instant::now);
        if since.elapsed() > OTHERS_WITHIN {
            info!(%app, others = others.len(), "apps of the same repository could not be looked at; pruning goes on");
            return false;
        }
        if is_first {
            let server = &ground.cluster.server;
            info!(%app, %server, others = others.len(), "they may ask for what is to be pruned: they are looked at first");
            self.engine.wake(others, Trigger::new(Look::GitNow, "move"));
        }
        "waiting for the other apps of the repository, which may ask for what left this one"
            .clone_into(&mut active.record.message);
        self.engine.queue.push_after(app.clone(), Trigger::new(Look::Live, "move"), LOOK_AGAIN);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_that_follow_the_same_and_stand_elsewhere_are_behind() {
        let app = |name: &str| AppId { namespace: "argocd".into(), name: name.into() };
        let commits = Commits::default();
        let set = |name: &str, cluster: &str, revision: &str, commit: &str| {
            commits.set(&app(name), vec![Followed::new(cluster, "r", revision, commit)]);
            (app(name), vec![what(cluster, "r", revision)])
        };
        let own = set("a", "in", "main", "2").0;
        let others = [
            set("same", "in", "main", "2"),
            set("pinned", "in", "v1", "1"),
            set("far", "out", "main", "1"),
            set("late", "in", "main", "1"),
            (app("new"), vec![what("in", "r", "main")]),
        ];
        let behind = |n: usize| commits.behind(&own, others.iter().take(n).cloned());
        assert_eq!(behind(3), BTreeSet::new());
        assert_eq!(behind(5), BTreeSet::from([app("late"), app("new")]));
        assert!(commits.behind(&app("nobody"), others.iter().cloned()).is_empty());
    }
}
