//! The entries of `status.resources`, from verdicts and healths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ObjectStatus, SyncCode};
use crate::app::AppId;
use crate::desired::{DeniedObjects, DesiredObject, DesiredSet, ObjectOptions, PruneOption};
use crate::drift::{NotCompared, Verdict, VerdictStatus};
use crate::fields::Exemptions;
use crate::health::{Health, HealthStatus, Role};
use crate::object::{Manifest, ObjectKey};
use crate::tracking::{Provenance, RecordedObjects};

/// What a comparison found, object by object.
#[derive(Clone, Copy)]
pub struct ComparedObjects<'a> {
    /// The app itself.
    pub app: &'a AppId,
    /// True if the app's sync options ask for confirmation before deletions.
    pub confirms_deletions: bool,
    /// What Git asks.
    pub desired: &'a DesiredSet,
    /// The live objects.
    pub live: &'a BTreeMap<ObjectKey, Arc<Manifest>>,
    /// The verdicts.
    pub verdicts: &'a BTreeMap<ObjectKey, Verdict>,
    /// The health of the live objects.
    pub healths: &'a BTreeMap<ObjectKey, Health>,
    /// Live hooks of the app.
    pub hooks: &'a BTreeSet<ObjectKey>,
    /// Objects that exist and could not be read, and why.
    pub unreadable: &'a [(ObjectKey, String)],
    /// The objects that the app is known to have had in Git.
    pub recorded: &'a RecordedObjects,
    /// What Git said about the objects, also about those that it no longer has.
    pub exemptions: &'a Exemptions,
    /// What Git asks and the project does not permit. These objects have no verdict.
    pub denied: &'a DeniedObjects,
}

impl ComparedObjects<'_> {
    /// One entry per object: compared ones, then hooks, then unreadable ones, then those that the project does not permit.
    pub fn statuses(&self) -> Vec<ObjectStatus> {
        let compared = self.verdicts.values().filter(|verdict| {
            let is_left_out = matches!(
                verdict.status,
                VerdictStatus::NotCompared(NotCompared::HandedOver | NotCompared::AskedFor)
            );
            !is_left_out && !self.hooks.contains(&verdict.key)
        });
        let compared = compared.map(|verdict| self.compared(verdict));
        let hooks = self.hooks.iter().map(|key| self.hook(key));
        let unreadable = self.unreadable.iter().map(|(key, error)| self.unreadable(key, error));
        let denied = self.denied.keys().filter_map(|key| self.desired.objects.get(key));
        let denied = denied.map(|wanted| self.denied(wanted));
        compared.chain(hooks).chain(unreadable).chain(denied).collect()
    }

    /// An object that the project does not permit. The entry is the same whether the object exists or not, and whatever is
    /// in it: all of it comes from Git. As in Argo CD, its live object is never looked at, so it is missing.
    fn denied(&self, wanted: &DesiredObject) -> ObjectStatus {
        let is_compared = !wanted.options.skip;
        ObjectStatus {
            key: wanted.key.clone(),
            version: wanted.manifest.gvk().version,
            status: is_compared.then_some(SyncCode::Unknown),
            counts: is_compared,
            is_permitted: false,
            health: Some(Health::new(HealthStatus::Missing, "")),
            role: if is_compared { Role::Counts } else { Role::Exempt },
            is_live: false,
            is_hook: false,
            requires_pruning: false,
            requires_confirmation: self.confirms_deletions,
            wave: Some(wanted.options.wave),
        }
    }

    fn compared(&self, verdict: &Verdict) -> ObjectStatus {
        let key = &verdict.key;
        let live = self.live.get(key).map(AsRef::as_ref);
        let wanted = self.desired.objects.get(key);
        let options = live.map(ObjectOptions::parse).unwrap_or_default();
        ObjectStatus {
            is_live: live.is_some(),
            health: if live.is_some() {
                self.healths.get(key).cloned()
            } else {
                Some(Health::new(HealthStatus::Missing, ""))
            },
            wave: Some(wanted.map_or(options.wave, |wanted| wanted.options.wave)),
            requires_confirmation: [options.prune, options.delete].contains(&Some(PruneOption::Confirm))
                || self.confirms_deletions
                || (wanted.is_none() && live.is_some_and(|live| !self.is_proven(key, live))),
            role: if wanted.is_some_and(|wanted| wanted.options.skip) {
                Role::Exempt
            } else if self.exemptions.of(key).ignore_health || self.is_app_itself(key) {
                Role::Bystander
            } else {
                Role::Counts
            },
            ..ObjectStatus::of(verdict, &self.version(key))
        }
    }

    fn is_proven(&self, key: &ObjectKey, live: &Manifest) -> bool {
        Provenance::of(live, self.recorded.contains(key)) == Provenance::Proven
    }

    fn hook(&self, key: &ObjectKey) -> ObjectStatus {
        ObjectStatus {
            key: key.clone(),
            version: self.version(key),
            status: None,
            counts: false,
            is_permitted: true,
            health: self.healths.get(key).cloned(),
            role: Role::Exempt,
            is_live: true,
            is_hook: true,
            requires_pruning: true,
            requires_confirmation: false,
            wave: self.live.get(key).map(|live| ObjectOptions::parse(live).wave),
        }
    }

    fn unreadable(&self, key: &ObjectKey, error: &str) -> ObjectStatus {
        ObjectStatus {
            key: key.clone(),
            version: self.version(key),
            status: Some(SyncCode::Unknown),
            counts: true,
            is_permitted: true,
            health: Some(Health::unknown(error.to_owned())),
            role: Role::Counts,
            is_live: true,
            is_hook: false,
            requires_pruning: false,
            requires_confirmation: false,
            wave: None,
        }
    }

    /// Git's version of the object, or the live one.
    fn version(&self, key: &ObjectKey) -> String {
        let desired = self.desired.objects.get(key).map(|object| &object.manifest);
        let manifest = desired.or_else(|| self.live.get(key).map(AsRef::as_ref));
        manifest.map(|manifest| manifest.gvk().version).unwrap_or_default()
    }

    fn is_app_itself(&self, key: &ObjectKey) -> bool {
        key.kind == "Application"
            && key.group == "argoproj.io"
            && key.name == self.app.name
            && key.namespace.as_deref() == Some(&self.app.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::IGNORE_HEALTH;
    use crate::object::KeyParts;
    use crate::plan::tests::fixture::Fixture;

    /// What was found, in lines of the plan's fixture. `both` is in sync, the rest is not, `live` requires pruning, and
    /// a live `hook=…` is a hook. Further words: a health status, `denied`, `handed-over`, `asked-for`, `unreadable` (instead of a
    /// verdict), `group=…` (another API group). A `denied` object has no verdict either. Only the live object has `live-api=…`, `live-wave=…` and
    /// `ignore-healthcheck=…`. The app is `prod/shop`, and `confirms_deletions` is its sync option.
    fn statuses(facts: &str, confirms_deletions: bool) -> Vec<ObjectStatus> {
        let fixture = Fixture::parse(facts);
        let (mut live, mut verdicts, mut healths) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut hooks, mut unreadable, mut denied) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut recorded = BTreeSet::new();
        for line in facts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let has = |word: &str| words.contains(&word);
            let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
            let (fixed, object) = fixture.facts.iter().find(|(key, _)| key.name == words[2]).unwrap();
            let key = match value("group=") {
                Some(group) => KeyParts { group: group.to_owned(), ..KeyParts::clone(fixed) }.into(),
                None => fixed.clone(),
            };
            healths.extend(
                words
                    .iter()
                    .find_map(|word| HealthStatus::from_word(word))
                    .map(|health| (key.clone(), Health::new(health, ""))),
            );
            if has("denied") {
                denied.push((key, "namespace prod is not permitted".to_owned()));
                continue;
            }
            if !has("unrecorded") {
                recorded.insert(key.clone());
            }
            if has("unreadable") {
                unreadable.push((key, "forbidden".to_owned()));
                continue;
            }
            let is_hook = object.live.as_ref().is_some_and(|live| live.options.is_hook);
            if is_hook {
                hooks.insert(key.clone());
            }
            if let Some(object) = &object.live {
                live.insert(key.clone(), Arc::new(edited(&object.manifest, value)));
            }
            let status = match words[0] {
                _ if is_hook => VerdictStatus::NotCompared(NotCompared::Hook),
                _ if has("hook=Skip") => VerdictStatus::NotCompared(NotCompared::Skip),
                _ if has("asked-for") => VerdictStatus::NotCompared(NotCompared::AskedFor),
                _ if has("handed-over") => VerdictStatus::NotCompared(NotCompared::HandedOver),
                "both" => VerdictStatus::Synced,
                _ => VerdictStatus::OutOfSync,
            };
            let verdict = Verdict {
                counts_for_app: status == VerdictStatus::OutOfSync,
                status,
                requires_pruning: words[0] == "live",
                ..Verdict::plain(key.clone())
            };
            verdicts.insert(key, verdict);
        }
        let recorded = RecordedObjects::default().with(recorded);
        let compared = ComparedObjects {
            app: &AppId { namespace: "prod".to_owned(), name: "shop".to_owned() },
            confirms_deletions,
            desired: &fixture.desired,
            live: &live,
            verdicts: &verdicts,
            healths: &healths,
            hooks: &hooks,
            unreadable: &unreadable,
            recorded: &recorded,
            exemptions: &Exemptions::default().next(&fixture.desired, &live, true),
            denied: &denied.into_iter().collect(),
        };
        compared.statuses()
    }

    fn edited<'a>(live: &Manifest, value: impl Fn(&str) -> Option<&'a str>) -> Manifest {
        let mut live = live.clone();
        for (word, annotation) in
            [("live-wave=", "argocd.argoproj.io/sync-wave"), ("ignore-healthcheck=", IGNORE_HEALTH)]
        {
            if let Some(text) = value(word) {
                live = live.with_annotation(annotation, text);
            }
        }
        let mut object = live.into_value();
        let annotation = value("ignore-healthcheck=").map(|_| format!("f:{IGNORE_HEALTH}"));
        let annotations: serde_json::Map<_, _> =
            annotation.into_iter().map(|field| (field, serde_json::json!({}))).collect();
        object["metadata"]["managedFields"] = serde_json::json!([{
            "manager": value("writer=").unwrap_or("argocd-controller"), "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:annotations": annotations}},
        }]);
        if let Some(api_version) = value("live-api=") {
            object["apiVersion"] = api_version.into();
        }
        Manifest::new(object).unwrap()
    }

    /// One object: version, status, health, wave, role, and what else is true of it. `red` makes the app `OutOfSync`.
    fn print(object: &ObjectStatus) -> String {
        let status = object.status.map_or("-", SyncCode::name);
        let health = object.health.as_ref().map_or("-".to_owned(), ToString::to_string);
        let wave = object.wave.map_or("-".to_owned(), |wave| wave.0.to_string());
        let flags = [
            (object.counts, " red"),
            (!object.is_live, " absent"),
            (object.is_hook, " hook"),
            (object.requires_pruning, " prune"),
            (object.requires_confirmation, " confirm"),
        ];
        let flags: String = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
        format!("{} {status} {health} {wave} {:?}{flags}", object.version, object.role)
    }

    fn check(cases: &[(&str, &str)]) {
        for (line, expected) in cases {
            let printed: Vec<String> = statuses(line, false).iter().map(print).collect();
            assert_eq!(printed.join(", "), *expected, "{line}");
        }
    }

    #[test]
    fn an_entry_says_what_the_comparison_found() {
        check(&[
            ("both ConfigMap web", "v1 Synced - 0 Counts"),
            ("drift ConfigMap web Degraded", "v1 OutOfSync Degraded 0 Counts red"),
            ("live ConfigMap web Healthy", "v1 OutOfSync Healthy 0 Counts red prune"),
            ("git ConfigMap web", "v1 OutOfSync Missing 0 Counts red absent"),
            // The health is from before the deletion.
            ("git ConfigMap web Healthy", "v1 OutOfSync Missing 0 Counts red absent"),
            // A tracking mark is no proof that this app created the object.
            ("live ConfigMap web unrecorded", "v1 OutOfSync - 0 Counts red prune confirm"),
            ("live ConfigMap web writer=kubectl", "v1 OutOfSync - 0 Counts red prune confirm"),
            ("drift ConfigMap web unrecorded writer=kubectl", "v1 OutOfSync - 0 Counts red"),
            // Another app lists it.
            ("live ConfigMap web handed-over", ""),
            // The options of the app ask for it: what is not listed is not recorded, and stays when the app is deleted.
            ("live Namespace web asked-for", ""),
            // A hook has one entry, though it has a verdict too.
            ("live Job web hook=PreSync wave=2 Degraded", "v1 - Degraded 2 Exempt hook prune"),
            ("live Job web hook=PreSync options=Prune=confirm", "v1 - - 0 Exempt hook prune"),
            // It exists, and its content is not known.
            ("git ConfigMap web wave=2 unreadable", "v1 Unknown Unknown: forbidden - Counts red"),
        ]);
    }

    #[test]
    fn what_the_project_does_not_permit_looks_the_same_whatever_the_cluster_holds() {
        for in_cluster in ["git", "drift", "both"] {
            for health in ["", " Healthy", " Degraded"] {
                for (options, expected) in [
                    ("wave=2", "v1 Unknown Missing 2 Counts red absent"),
                    ("live-wave=5", "v1 Unknown Missing 0 Counts red absent"),
                    ("ignore-healthcheck=true", "v1 Unknown Missing 0 Counts red absent"),
                    ("live-api=example.com/v2", "v1 Unknown Missing 0 Counts red absent"),
                    ("hook=Skip", "v1 - Missing 0 Exempt absent"),
                ] {
                    check(&[(&format!("{in_cluster} ConfigMap web denied {options}{health}"), expected)]);
                }
            }
        }
        // Git does not ask for it: it is not listed.
        check(&[("live ConfigMap web denied", ""), ("live Job web hook=Sync denied", "")]);
    }

    #[test]
    fn git_names_version_and_wave_before_the_live_object() {
        check(&[
            ("git Widget web wave=1", "v1 OutOfSync Missing 1 Counts red absent"),
            ("drift Widget web wave=1 live-wave=5", "v1 OutOfSync - 1 Counts red"),
            ("drift Widget web live-wave=5", "v1 OutOfSync - 0 Counts red"),
            ("live Widget web live-wave=5", "v1 OutOfSync - 5 Counts red prune"),
            ("drift Widget web live-api=example.com/v2", "v1 OutOfSync - 0 Counts red"),
            ("live Widget web live-api=example.com/v2", "v2 OutOfSync - 0 Counts red prune"),
            ("live Job web hook=Sync live-api=batch/v1beta1", "v1beta1 - - 0 Exempt hook prune"),
            // Neither is known.
            ("live Widget web unreadable", " Unknown Unknown: forbidden - Counts red"),
        ]);
    }

    #[test]
    fn some_objects_do_not_count_for_the_health_of_the_app() {
        check(&[
            // Never applied and not compared.
            ("both ConfigMap web hook=Skip", "v1 - - 0 Exempt"),
            ("both ConfigMap web hook=Skip ignore-healthcheck=true", "v1 - - 0 Exempt"),
            (
                "live ConfigMap web ignore-healthcheck=true Degraded",
                "v1 OutOfSync Degraded 0 Bystander red prune",
            ),
            // Another client than plumb wrote the annotation, or Git has the object and does not have the annotation.
            (
                "live ConfigMap web ignore-healthcheck=true Degraded writer=kubectl",
                "v1 OutOfSync Degraded 0 Counts red prune confirm",
            ),
            ("both ConfigMap web ignore-healthcheck=true Degraded", "v1 Synced Degraded 0 Counts"),
            ("both ConfigMap web ignore-healthcheck=false", "v1 Synced - 0 Counts"),
            // The app itself, and objects that differ from it in one part of the key.
            ("both Application shop", "v1alpha1 Synced - 0 Bystander"),
            ("git Application shop", "v1alpha1 OutOfSync Missing 0 Bystander red absent"),
            ("both Application other", "v1alpha1 Synced - 0 Counts"),
            ("both Application shop ns=other", "v1alpha1 Synced - 0 Counts"),
            ("both ConfigMap shop group=argoproj.io", "v1 Synced - 0 Counts"),
            ("both Application shop group=app.k8s.io", "v1alpha1 Synced - 0 Counts"),
        ]);
    }

    #[test]
    fn the_live_object_or_the_app_asks_for_confirmation() {
        for (line, by_object, by_app) in [
            ("both ConfigMap web", false, true),
            ("both ConfigMap web options=Prune=confirm", true, true),
            ("both ConfigMap web options=Delete=confirm", true, true),
            ("both ConfigMap web options=Prune=false", false, true),
            // A deletion reads the options of the live object.
            ("git ConfigMap web options=Prune=confirm", false, true),
            // Hooks are deleted by their policies.
            ("live Job web hook=Sync options=Delete=confirm", false, false),
            ("git ConfigMap web options=Prune=confirm unreadable", false, false),
        ] {
            for (confirms_deletions, expected) in [(false, by_object), (true, by_app)] {
                let confirms: Vec<bool> = statuses(line, confirms_deletions)
                    .iter()
                    .map(|object| object.requires_confirmation)
                    .collect();
                assert_eq!(confirms, [expected], "{line} {confirms_deletions}");
            }
        }
    }

    #[test]
    fn hooks_and_unreadable_objects_come_last() {
        let facts =
            "git ConfigMap a unreadable\nlive Job b hook=Sync\nlive ConfigMap c handed-over\nboth Pod d";
        let objects = statuses(facts, false);
        let names: Vec<&str> = objects.iter().map(|object| object.key.name.as_str()).collect();
        assert_eq!(names, ["d", "b", "a"]);
    }
}
