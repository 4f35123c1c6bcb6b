//! What happens to the Applications of a set that is being deleted.

use jiff::{SignedDuration, Timestamp};
use plumb_crd::ApplicationSet;
use serde_json::{Value as Json, json};

use super::ownership::is_owned_by;
use super::policy::{Policy, Rules};
use super::steps::{Assignment, deletes_in_reverse, steps_of};
use super::validate::name_of;

/// The finalizer that keeps a set until its Applications are handled.
pub(super) const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// An Application that takes longer to disappear is a failure.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// What to do next for a set that is being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// In this order.
    pub steps: Vec<RemovalStep>,
    /// True if another look is needed before the set may go.
    pub waits: bool,
    /// An Application that is stuck.
    pub stuck: Option<String>,
}

/// One step of the removal of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum RemovalStep {
    /// The Application stays, without an owner.
    Release {
        /// Its name.
        name: String,
        /// The merge patch.
        patch: Json,
    },
    /// The Application is deleted.
    Delete {
        /// Its name.
        name: String,
        /// The object that was seen.
        uid: String,
    },
    /// The set goes, and Kubernetes deletes what it still owns.
    RemoveFinalizer {
        /// The finalizers that stay.
        finalizers: Vec<String>,
    },
}

/// What to do for a set with a deletion time. Applications that its policy keeps are released at once, since Kubernetes
/// deletes what the set still owns when it goes. Without its finalizer Kubernetes handles the rest alone.
pub fn remove(set: &ApplicationSet, existing: &[Json], rules: &Rules, now: Timestamp) -> Removal {
    let mut removal = Removal { steps: Vec::new(), waits: false, stuck: None };
    let has_finalizer = set.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    let owned: Vec<&Json> = existing.iter().filter(|live| is_owned_by(live, set)).collect();
    let keeps = !Policy::of(set, rules).allows_delete();
    if keeps {
        for live in &owned {
            let patch = json!({"metadata": {"ownerReferences": null}});
            removal.steps.push(RemovalStep::Release { name: name_of(live).to_owned(), patch });
        }
    }
    if !has_finalizer {
        return removal;
    }
    // As in Argo CD: whether rollouts in steps are switched on does not matter here.
    if !keeps && deletes_in_reverse(set) {
        let all: Vec<Json> = owned.iter().map(|live| (*live).clone()).collect();
        let assignment = Assignment::new(steps_of(set).unwrap_or_default(), &all);
        let last = owned.iter().filter_map(|live| Some((assignment.step(name_of(live))?, *live)));
        // The last step first; within a step, the first name first.
        let last = last.min_by_key(|(step, live)| (std::cmp::Reverse(*step), name_of(live).to_owned()));
        if let Some((_, live)) = last {
            removal.waits = true;
            let name = name_of(live).to_owned();
            let since = live["metadata"]["deletionTimestamp"]
                .as_str()
                .and_then(|time| time.parse::<Timestamp>().ok());
            match since {
                Some(since) if now.duration_since(since) > STUCK_AFTER => removal.stuck = Some(name),
                Some(_) => {}
                None => {
                    let uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                    removal.steps.push(RemovalStep::Delete { name, uid });
                }
            }
            return removal;
        }
    }
    let kept = set.metadata.finalizers.iter().filter(|finalizer| *finalizer != FINALIZER);
    removal.steps.push(RemovalStep::RemoveFinalizer { finalizers: kept.cloned().collect() });
    removal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_goes_first_also_where_rollouts_are_switched_off() {
        let app = |name: &str, env: &str| {
            json!({"metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"env": env}, "ownerReferences": [
                {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "s", "uid": "u", "controller": true},
            ]}})
        };
        let step =
            |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
        let set = ApplicationSet::from_json(&json!({
            "metadata": {"name": "s", "namespace": "n", "uid": "u", "finalizers": [FINALIZER]},
            "spec": {"generators": [], "template": {"metadata": {}, "spec": {}}, "strategy": {
                "type": "RollingSync", "deletionOrder": "reverse",
                "rollingSync": {"steps": [step("dev"), step("prod")]}}},
        }))
        .unwrap();
        let removal =
            remove(&set, &[app("a", "dev"), app("b", "prod")], &Rules::default(), Timestamp::UNIX_EPOCH);
        assert!(removal.waits);
        let (name, uid) = ("b".to_owned(), "b".to_owned());
        assert_eq!(removal.steps, [RemovalStep::Delete { name, uid }]);
    }

    #[test]
    fn what_the_policy_keeps_is_released_also_without_the_finalizer() {
        let app = json!({"metadata": {"name": "a", "namespace": "n", "ownerReferences": [
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "s", "uid": "u", "controller": true},
        ]}});
        let steps = |policy: &str, finalizers: &[&str]| {
            let set = ApplicationSet::from_json(&json!({
                "metadata": {"name": "s", "namespace": "n", "uid": "u", "finalizers": finalizers},
                "spec": {"generators": [], "template": {"metadata": {}, "spec": {}},
                    "syncPolicy": {"applicationsSync": policy}},
            }))
            .unwrap();
            let rules = Rules::default();
            remove(&set, std::slice::from_ref(&app), &rules, Timestamp::UNIX_EPOCH).steps
        };
        let patch = json!({"metadata": {"ownerReferences": null}});
        let release = RemovalStep::Release { name: "a".to_owned(), patch };
        assert_eq!(steps("create-only", &[]), std::slice::from_ref(&release));
        assert_eq!(steps("sync", &[]), []);
        let go = RemovalStep::RemoveFinalizer { finalizers: Vec::new() };
        assert_eq!(steps("create-update", &[FINALIZER]), [release, go]);
    }
}
