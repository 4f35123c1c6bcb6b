//! `app:group/Kind:namespace/name`.

use std::{fmt, str::FromStr};

use crate::object::{Manifest, ObjectKey};

/// The value of the tracking annotation: which app, and which object is meant. The object is part of it so
/// that a copy of the annotation on a child can be recognised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackingId {
    /// Instance name of the app: its name, or `namespace_name` outside the control-plane namespace.
    pub app: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; for cluster-scoped objects the app's destination namespace, as Argo CD writes it.
    pub namespace: String,
    /// Name; empty for an object that leaves it to the server. It may contain colons (RBAC names do).
    pub name: String,
}

impl TrackingId {
    /// Does it mean this live object?
    pub fn means(&self, live: &Manifest) -> bool {
        live.key().is_some_and(|key| self.means_key(&key))
    }

    /// Does it mean the object with this key? The namespace of a cluster-scoped object does not matter.
    pub fn means_key(&self, key: &ObjectKey) -> bool {
        self.group == key.group
            && self.kind == key.kind
            && self.name == key.name
            && key.namespace.as_ref().is_none_or(|namespace| *namespace == self.namespace)
    }
}

/// The text is not a tracking id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tracking id looks like `app:group/Kind:namespace/name`")]
pub struct NotATrackingId;

impl FromStr for TrackingId {
    type Err = NotATrackingId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, ':');
        let (Some(app), Some(kind), Some(object)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NotATrackingId);
        };
        let (group, kind) = in_two(kind).ok_or(NotATrackingId)?;
        let (namespace, name) = in_two(object).ok_or(NotATrackingId)?;
        let [app, group, kind, namespace, name] = [app, group, kind, namespace, name].map(str::to_owned);
        Ok(Self { app, group, kind, namespace, name })
    }
}

/// Both sides of the only slash.
fn in_two(text: &str) -> Option<(&str, &str)> {
    text.split_once('/').filter(|(_, after)| !after.contains('/'))
}

impl fmt::Display for TrackingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}:{}/{}", self.app, self.group, self.kind, self.namespace, self.name)
    }
}
