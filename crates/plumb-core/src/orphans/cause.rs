//! Why an object is an orphan.

use std::collections::{BTreeMap, BTreeSet};

use crate::app::AppId;
use crate::object::{Manifest, ObjectKey};
use crate::tracking::{FIELD_MANAGER, INSTALLATION_ANNOTATION, TrackingMethod, TrackingSettings, owner_of};

const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Helm keeps its releases in Secrets of this type.
const RELEASE_TYPE: &str = "helm.sh/release.v1";

/// An app that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownApp {
    /// Its Application.
    pub id: AppId,
    /// Its name in tracking marks.
    pub instance: String,
    /// Objects that its status shows as no longer in Git.
    pub orphans: BTreeSet<ObjectKey>,
}

/// Why an object is an orphan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The app exists, and Git no longer has the object.
    RemovedFromGit {
        /// The app.
        app: AppId,
    },
    /// A tracking mark names an app that does not exist.
    AppGone {
        /// Its name in the mark.
        app: String,
    },
    /// Helm's marks name a release that does not exist.
    ReleaseGone {
        /// Namespace and name.
        release: String,
    },
}

impl Cause {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Self::RemovedFromGit { app } => format!("no longer in Git, app {app}"),
            Self::AppGone { app } => format!("app {app} no longer exists"),
            Self::ReleaseGone { release } => format!("Helm release {release} no longer exists"),
        }
    }
}

/// Has the owner that the marks name ever written the object? The status of an app is evidence by itself.
pub(super) fn is_proven(cause: &Cause, object: &Manifest) -> bool {
    let is_by = |wanted: &dyn Fn(&str) -> bool| {
        let entries = object.value().pointer("/metadata/managedFields").and_then(serde_json::Value::as_array);
        let mut managers = entries.into_iter().flatten().filter_map(|entry| entry.get("manager")?.as_str());
        managers.any(wanted)
    };
    match cause {
        Cause::RemovedFromGit { .. } => true,
        Cause::AppGone { .. } => is_by(&|manager| manager == FIELD_MANAGER),
        Cause::ReleaseGone { .. } => is_by(&|manager| manager.eq_ignore_ascii_case("helm")),
    }
}

/// What is known about owners.
pub(super) struct Owners<'facts> {
    apps: &'facts [KnownApp],
    instances: BTreeSet<&'facts str>,
    removed: BTreeMap<&'facts ObjectKey, &'facts KnownApp>,
    releases: BTreeSet<String>,
    tracking: &'facts TrackingSettings,
}

impl<'facts> Owners<'facts> {
    pub(super) fn new(
        objects: &'facts BTreeMap<ObjectKey, Manifest>,
        apps: &'facts [KnownApp],
        tracking: &'facts TrackingSettings,
    ) -> Self {
        let removed = apps.iter().flat_map(|app| app.orphans.iter().map(move |key| (key, app))).collect();
        let is_release = |object: &&Manifest| {
            object.kind() == "Secret"
                && object.value().get("type").and_then(serde_json::Value::as_str) == Some(RELEASE_TYPE)
        };
        let releases = objects
            .values()
            .filter(is_release)
            .filter_map(|secret| Some(format!("{}/{}", secret.namespace()?, secret.label("name")?)));
        Self {
            apps,
            // Another control plane names its apps without their namespace.
            instances: apps.iter().flat_map(|app| [app.instance.as_str(), app.id.name.as_str()]).collect(),
            removed,
            releases: releases.collect(),
            tracking,
        }
    }

    /// The app whose mark an object has.
    pub(super) fn app_of(&self, object: &Manifest) -> Option<String> {
        owner_of(object, self.tracking).filter(|owner| owner.means(object)).map(|owner| owner.app)
    }

    /// Why an object is an orphan; `None` if it is none.
    pub(super) fn cause(&self, key: &ObjectKey, object: &Manifest) -> Option<Cause> {
        // What another object owns goes with that one.
        if object.is_terminating() || object.value().pointer("/metadata/ownerReferences/0").is_some() {
            return None;
        }
        if let Some(app) = self.removed.get(key) {
            return Some(Cause::RemovedFromGit { app: app.id.clone() });
        }
        // Without any app, it is more likely that the wrong namespace was looked at than that all apps are gone.
        if let Some(app) = self.app_of(object) {
            // With an installation id, the app may be in a control plane elsewhere.
            let is_elsewhere = object.annotation(INSTALLATION_ANNOTATION).is_some();
            let is_gone = !is_elsewhere && !self.instances.contains(app.as_str()) && !self.apps.is_empty();
            let cause = is_gone.then_some(Cause::AppGone { app });
            // Helm and others use the label of apps too, and controllers copy it.
            let is_label = self.tracking.method == TrackingMethod::Label;
            return cause.filter(|cause| !is_label || is_proven(cause, object));
        }
        let release =
            format!("{}/{}", object.annotation(RELEASE_NAMESPACE)?, object.annotation(RELEASE_NAME)?);
        let is_of_helm = object.label(MANAGED_BY) == Some("Helm");
        (is_of_helm && !self.releases.contains(&release)).then_some(Cause::ReleaseGone { release })
    }
}
