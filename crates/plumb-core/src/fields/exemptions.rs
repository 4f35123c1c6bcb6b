//! What Git said about objects that it no longer has.
//!
//! `IgnoreExtraneous` and `ignore-healthcheck` are annotations that Git sets on an object, and that still count when Git has
//! removed the object. Then only the live object has them, where any client can write them, also under the name of plumb's
//! field manager. So plumb records what Git said while Git still had the object, and believes no other object. The record is
//! in the app's `DriftReport`, which other users may write than those who may write the object.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::of_git::annotation_of_git;
use crate::app::CompareOptions;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{Manifest, ObjectKey};

/// An object's health does not count for the app's.
pub(crate) const IGNORE_HEALTH: &str = "argocd.argoproj.io/ignore-healthcheck";

/// What an object is exempt from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exemption {
    /// `compare-options: IgnoreExtraneous`: the object does not make the app `OutOfSync` when Git no longer has it.
    pub ignore_extraneous: bool,
    /// `ignore-healthcheck`: the object's health does not count for the app's.
    pub ignore_health: bool,
}

impl Exemption {
    fn of_git(desired: &DesiredObject) -> Self {
        Self {
            ignore_extraneous: desired.options.compare.ignore_extraneous,
            ignore_health: desired.manifest.annotation(IGNORE_HEALTH) == Some("true"),
        }
    }

    /// What the annotations of a live object say, as far as an apply from Git seems to have written them.
    fn of_live(live: &Manifest) -> Self {
        let options = annotation_of_git(live, CompareOptions::ANNOTATION).map(CompareOptions::parse);
        Self {
            ignore_extraneous: options.unwrap_or_default().ignore_extraneous,
            ignore_health: annotation_of_git(live, IGNORE_HEALTH) == Some("true"),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            ignore_extraneous: self.ignore_extraneous && other.ignore_extraneous,
            ignore_health: self.ignore_health && other.ignore_health,
        }
    }
}

/// The exempt objects of an app. Objects that are exempt from nothing are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exemptions {
    /// `None` before the first comparison of an app of which no process of plumb has left a record.
    known: Option<BTreeMap<ObjectKey, Exemption>>,
}

impl Exemptions {
    /// What an earlier process recorded.
    pub fn recorded(objects: impl IntoIterator<Item = (ObjectKey, Exemption)>) -> Self {
        Self { known: Some(objects.into_iter().collect()) }
    }

    /// The exempt objects after a comparison. Git decides about the objects that it has. Another live object keeps what is
    /// known of it, as long as its annotations say so, too. In an app that plumb has never compared before, what Argo CD
    /// applied is believed. `is_complete`: `live` has every live object of the app.
    #[must_use]
    pub fn next(
        &self,
        desired: &DesiredSet,
        live: &BTreeMap<ObjectKey, Arc<Manifest>>,
        is_complete: bool,
    ) -> Self {
        let of_git = desired.objects.iter().map(|(key, object)| (key.clone(), Exemption::of_git(object)));
        let left =
            live.iter().filter(|(key, _)| !desired.objects.contains_key(*key)).filter_map(|(key, live)| {
                let known = match &self.known {
                    Some(known) => *known.get(key)?,
                    None => Exemption { ignore_extraneous: true, ignore_health: true },
                };
                Some((key.clone(), known.and(Exemption::of_live(live))))
            });
        let unseen = self.known.iter().flatten().filter(|(key, _)| {
            !is_complete && !live.contains_key(*key) && !desired.objects.contains_key(*key)
        });
        let unseen = unseen.map(|(key, exemption)| (key.clone(), *exemption));
        let all = of_git.chain(left).chain(unseen);
        Self::recorded(all.filter(|(_, exemption)| *exemption != Exemption::default()))
    }

    /// What this object is exempt from.
    pub fn of(&self, key: &ObjectKey) -> Exemption {
        self.known.as_ref().and_then(|known| known.get(key)).copied().unwrap_or_default()
    }

    /// The exempt objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Exemption)> {
        self.known.iter().flatten().map(|(key, exemption)| (key, *exemption))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::ObjectOptions;

    const OPTION: &str = "argocd.argoproj.io/compare-options";

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", Some("n".to_owned()), name)
    }

    /// An object as an apply under the name of plumb's field manager leaves it.
    fn object(name: &str, annotations: &serde_json::Value) -> Manifest {
        let owned: serde_json::Map<_, _> = annotations
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| (format!("f:{key}"), json!({})))
            .collect();
        Manifest::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "n", "annotations": annotations, "managedFields": [
                {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:annotations": owned}}},
            ]},
        }))
        .expect("an object")
    }

    fn git(objects: &[Manifest]) -> DesiredSet {
        let mut set = DesiredSet::default();
        for manifest in objects {
            let object = DesiredObject {
                key: manifest.key().expect("it has a name"),
                options: ObjectOptions::parse(manifest),
                manifest: manifest.clone(),
                origin: None,
            };
            set.objects.insert(object.key.clone(), object);
        }
        set
    }

    fn live(objects: &[Manifest]) -> BTreeMap<ObjectKey, Arc<Manifest>> {
        objects
            .iter()
            .map(|object| (object.key().expect("it has a name"), Arc::new(object.clone())))
            .collect()
    }

    fn ignored(exemptions: &Exemptions) -> Vec<&str> {
        exemptions
            .objects()
            .filter(|(_, one)| one.ignore_extraneous)
            .map(|(key, _)| key.name.as_str())
            .collect()
    }

    #[test]
    fn an_annotation_that_git_never_had_exempts_nothing() {
        let option = json!({OPTION: "IgnoreExtraneous", IGNORE_HEALTH: "true"});
        let plain = object("web", &json!({}));
        let first = Exemptions::default().next(&git(std::slice::from_ref(&plain)), &live(&[plain]), true);
        assert_eq!(first, Exemptions::recorded([]));
        // Another client applies the annotations as `argocd-controller`; then the object leaves Git.
        let forged = live(&[object("web", &option)]);
        let after = first.next(&git(&[]), &forged, true);
        assert_eq!(after.of(&key("web")), Exemption::default());
        assert_eq!(after.next(&git(&[]), &forged, true).of(&key("web")), Exemption::default());
    }

    #[test]
    fn what_git_said_counts_until_the_object_is_gone_or_says_otherwise() {
        let object = |annotations| object("web", &annotations);
        let marked = object(json!({OPTION: "IgnoreExtraneous"}));
        let first = Exemptions::default().next(&git(std::slice::from_ref(&marked)), &live(&[]), true);
        assert_eq!(ignored(&first), ["web"]);
        let left = first.next(&git(&[]), &live(std::slice::from_ref(&marked)), true);
        assert_eq!(ignored(&left), ["web"]);
        let after_restart = Exemptions::recorded(left.objects().map(|(key, one)| (key.clone(), one)));
        assert_eq!(
            ignored(&after_restart.next(&git(&[]), &live(std::slice::from_ref(&marked)), true)),
            ["web"]
        );
        assert_eq!(ignored(&left.next(&git(&[]), &live(&[object(json!({}))]), true)), [""; 0]);
        assert_eq!(ignored(&left.next(&git(&[object(json!({}))]), &live(&[marked]), true)), [""; 0]);
        assert_eq!(ignored(&left.next(&git(&[]), &live(&[]), false)), ["web"], "not listed yet");
        assert_eq!(ignored(&left.next(&git(&[]), &live(&[]), true)), [""; 0]);
    }

    #[test]
    fn an_app_that_argo_cd_left_behind_keeps_what_argo_cd_applied() {
        let old = live(&[object("old", &json!({OPTION: "IgnoreExtraneous"}))]);
        assert_eq!(ignored(&Exemptions::default().next(&git(&[]), &old, true)), ["old"]);
    }
}
