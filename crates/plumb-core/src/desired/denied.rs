//! The objects of an app that its project does not permit.

use std::collections::{BTreeMap, BTreeSet};

use super::{DesiredHook, DesiredSet};
use crate::object::ObjectKey;
use crate::project::{Project, TargetCluster};

/// At most this many reasons have a message of their own.
const MOST_REASONS: usize = 10;
/// A message names at most this many objects.
const MOST_NAMES: usize = 3;

/// What Git asks and the project does not permit. These objects are neither read nor compared: nothing here depends on what
/// the cluster holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedObjects(BTreeMap<ObjectKey, String>);

impl DeniedObjects {
    /// The objects and hooks of a desired set that the project does not permit in this cluster.
    pub fn of(desired: &DesiredSet, project: &Project, cluster: &TargetCluster<'_>) -> Self {
        // A hook that leaves its name to the sync is judged by the beginning of the name.
        let hooks = desired.hooks.iter().map(DesiredHook::key_or_prefix);
        let keys = desired.objects.keys().cloned().chain(hooks);
        let denied = keys.filter_map(|key| {
            let why = project.permits_object(&key, cluster).err()?.to_string();
            Some((key, why))
        });
        denied.collect()
    }

    /// True if the project does not permit this object.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.0.contains_key(key)
    }

    /// All of them.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.0.keys()
    }

    /// One message per reason, with the names of some objects. Their number is limited: a set with thousands of objects in
    /// thousands of namespaces must not outgrow the status.
    pub fn messages(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, BTreeSet<&ObjectKey>> = BTreeMap::new();
        for (key, why) in &self.0 {
            by_reason.entry(why).or_default().insert(key);
        }
        let n_reasons = by_reason.len();
        let mut messages: Vec<String> = by_reason
            .into_iter()
            .take(MOST_REASONS)
            .map(|(why, keys)| format!("{why}: {}", names(&keys)))
            .collect();
        if n_reasons > MOST_REASONS {
            messages.push(format!("{} more reasons why objects are not permitted", n_reasons - MOST_REASONS));
        }
        messages
    }
}

impl FromIterator<(ObjectKey, String)> for DeniedObjects {
    fn from_iter<T: IntoIterator<Item = (ObjectKey, String)>>(denied: T) -> Self {
        Self(denied.into_iter().collect())
    }
}

fn names(keys: &BTreeSet<&ObjectKey>) -> String {
    let mut names: Vec<String> = keys.iter().take(MOST_NAMES).map(ToString::to_string).collect();
    if keys.len() > MOST_NAMES {
        names.push(format!("and {} more", keys.len() - MOST_NAMES));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::{DesiredContext, KindFilter, RenderedManifest, Scopes, build};
    use crate::project::{DestinationPattern, KindPattern, ProjectRules};
    use crate::tracking::TrackingSettings;

    const CLUSTER: TargetCluster<'_> =
        TargetCluster { server: "https://kubernetes.default.svc", name: "in-cluster", project: None };

    /// A project that permits namespaces `team-*`, no Secrets, and the cluster-scoped kind Namespace only.
    fn denied(manifests: &[(&str, &str, &str, bool)]) -> DeniedObjects {
        let rules = ProjectRules {
            name: "team".to_owned(),
            destinations: vec![DestinationPattern {
                server: "*".to_owned(),
                name: String::new(),
                namespace: "team-*".to_owned(),
            }],
            namespaced_kinds_denied: vec![KindPattern {
                kind: "Secret".to_owned(),
                ..KindPattern::default()
            }],
            cluster_kinds_allowed: vec![KindPattern {
                kind: "Namespace".to_owned(),
                ..KindPattern::default()
            }],
            ..ProjectRules::default()
        };
        let (project, problems) = Project::compile(&rules);
        assert_eq!(problems, []);
        let rendered = manifests.iter().map(|(api_version, kind, place, is_hook)| {
            let (namespace, name) =
                place.split_once('/').map_or((None, *place), |(ns, name)| (Some(ns), name));
            let annotations =
                if *is_hook { json!({"argocd.argoproj.io/hook": "PreSync"}) } else { json!({}) };
            let metadata = json!({"name": name, "namespace": namespace, "annotations": annotations});
            let value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
            RenderedManifest { value, origin: None }
        });
        let desired = build(
            rendered.collect(),
            &DesiredContext {
                app: "app",
                destination_namespace: Some("team-a"),
                destination_server: CLUSTER.server,
                scopes: &Scopes::built_in(),
                tracking: &TrackingSettings::default(),
                filter: &KindFilter::default(),
            },
        );
        DeniedObjects::of(&desired, &project, &CLUSTER)
    }

    #[test]
    fn objects_and_hooks_outside_the_project_are_named_by_reason() {
        let denied = denied(&[
            ("v1", "ConfigMap", "mine", false),
            ("v1", "Namespace", "team-a", false),
            ("v1", "ConfigMap", "team-b/x", false),
            ("v1", "ConfigMap", "kube-system/extension", false),
            ("batch/v1", "Job", "kube-system/steal", true),
            ("v1", "Secret", "mine", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "admin", false),
        ]);
        assert_eq!(
            denied.messages(),
            [
                "namespace kube-system is not permitted in project 'team': ConfigMap kube-system/extension, \
                 batch/Job kube-system/steal",
                "resource :Secret is not permitted in project team: Secret team-a/mine",
                "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project team: \
                 rbac.authorization.k8s.io/ClusterRole admin",
            ]
        );
        assert_eq!(denied.keys().count(), 4);
    }

    #[test]
    fn a_set_with_many_denied_objects_has_few_messages() {
        let places: Vec<String> = (0..40).map(|n| format!("ns-{}/x{n}", n % 20)).collect();
        let manifests: Vec<_> =
            places.iter().map(|place| ("v1", "ConfigMap", place.as_str(), false)).collect();
        let messages = denied(&manifests).messages();
        assert_eq!(messages.len(), MOST_REASONS + 1);
        assert_eq!(messages[MOST_REASONS], "10 more reasons why objects are not permitted");
        let same: Vec<String> = (0..9).map(|n| format!("other/x{n}")).collect();
        let manifests: Vec<_> = same.iter().map(|place| ("v1", "ConfigMap", place.as_str(), false)).collect();
        assert_eq!(
            denied(&manifests).messages(),
            ["namespace other is not permitted in project 'team': ConfigMap other/x0, ConfigMap other/x1, \
              ConfigMap other/x2, and 6 more"]
        );
    }
}
