//! Reading marks: which app tracks a live object?

use serde_json::Value;

use super::{
    INSTALLATION_ANNOTATION, TRACKING_ANNOTATION, TrackingId, TrackingMethod, TrackingSettings, is_crd,
};
use crate::object::Manifest;

/// The field manager under which objects are written; Argo CD's, so that either engine can take over objects that the
/// other applied.
pub const FIELD_MANAGER: &str = "argocd-controller";

/// The app that the mark on a live object names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Instance name of the app.
    pub app: String,
    /// The whole id; `None` where labels track, which name only the app.
    pub id: Option<TrackingId>,
}

impl Owner {
    /// Is the mark about this very object, and not copied from another? A label does not say, and passes.
    pub fn means(&self, live: &Manifest) -> bool {
        self.id.as_ref().is_none_or(|id| id.means(live))
    }
}

/// The app that the mark on a live object names; `None` without a mark, with an unreadable one, or with one of
/// another installation. The mark may be a copy: ask [`Owner::means`], or use [`tracked_by`], which does.
pub fn owner_of(live: &Manifest, settings: &TrackingSettings) -> Option<Owner> {
    owner_by_marks(|key| live.label(key), |key| live.annotation(key), settings)
}

/// The same for a caller that has labels and annotations, but no manifest.
pub fn owner_by_marks<'marks>(
    label: impl Fn(&str) -> Option<&'marks str>,
    annotation: impl Fn(&str) -> Option<&'marks str>,
    settings: &TrackingSettings,
) -> Option<Owner> {
    match settings.method {
        TrackingMethod::Label => {
            let app = label(&settings.label_key).filter(|app| !app.is_empty())?;
            Some(Owner { app: app.to_owned(), id: None })
        }
        TrackingMethod::Annotation | TrackingMethod::AnnotationAndLabel => {
            let installation = annotation(INSTALLATION_ANNOTATION).unwrap_or_default();
            if installation != settings.installation_id.as_deref().unwrap_or_default() {
                return None;
            }
            let id: TrackingId = annotation(TRACKING_ANNOTATION)?.parse().ok()?;
            (!id.app.is_empty()).then(|| Owner { app: id.app.clone(), id: Some(id) })
        }
    }
}

/// Which app tracks a live object, seen from one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackedBy {
    /// This app's.
    Ours,
    /// Another app's.
    Other {
        /// Instance name of that app.
        app: String,
    },
    /// It carries the mark of some other object: a controller copied the annotation to a child. For an object
    /// that this app also wants it is a stale mark, otherwise the object does not belong to the app.
    Copied {
        /// What the mark says.
        id: TrackingId,
    },
    /// A CRD, which carries no mark, and which [`FIELD_MANAGER`] has written: a sync applied it. It counts as
    /// adopted for every app that wants it, and is an orphan of none: it must never be pruned for lack of a
    /// manifest.
    AppliedCrd,
    /// No app tracks it.
    NoApp,
}

/// Which app tracks this live object, seen from the app with instance name `app`?
///
/// CRDs carry no mark (see [`is_crd`]). One that a chart's own installer or a user created is tracked by no app, and an
/// app that renders it shows it as unadopted until a sync has written it; Argo CD calls it `Synced` at once. A
/// CRD that does carry a mark (an old label, a hand-made annotation) is judged by the mark like any object.
pub fn tracked_by(live: &Manifest, app: &str, settings: &TrackingSettings) -> TrackedBy {
    match owner_of(live, settings) {
        Some(Owner { id: Some(id), .. }) if !id.means(live) => TrackedBy::Copied { id },
        Some(owner) if owner.app == app => TrackedBy::Ours,
        Some(owner) => TrackedBy::Other { app: owner.app },
        None if is_crd(live) && is_written_by_us(live) => TrackedBy::AppliedCrd,
        None => TrackedBy::NoApp,
    }
}

/// The names under which plumb, Argo CD and their commands write. Argo CD replaces and creates objects under the name of its
/// program.
const OUR_MANAGERS: [&str; 3] = [FIELD_MANAGER, "argocd-application-controller", "argocd"];

/// Is this a field manager under which plumb, Argo CD or their commands write?
pub fn is_our_manager(manager: &str) -> bool {
    OUR_MANAGERS.contains(&manager)
}

/// Did plumb or Argo CD write this object itself, and not only a subresource of it?
pub(super) fn is_written_by_us(live: &Manifest) -> bool {
    let entries = live.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().any(|entry| {
        let is_main = entry.get("subresource").and_then(Value::as_str).is_none_or(str::is_empty);
        let manager = entry.get("manager").and_then(Value::as_str);
        is_main && manager.is_some_and(is_our_manager)
    })
}
