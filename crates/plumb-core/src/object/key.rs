//! Identity: which object, whatever version it is read in.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Identity of one object in one cluster. It has no version on purpose: the API server serves the same object
/// in every version of its group, so two manifests that differ only in version are one object.
///
/// Cheap to clone: a key is in every map there is, and all clones are one text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "KeyParts", into = "KeyParts")]
pub struct ObjectKey(Arc<KeyParts>);

/// What an [`ObjectKey`] says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyParts {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: Option<String>,
        name: impl Into<String>,
    ) -> Self {
        KeyParts { group: group.into(), kind: kind.into(), namespace, name: name.into() }.into()
    }

    /// The key of a Namespace.
    pub fn of_namespace(name: &str) -> Self {
        Self::new("", "Namespace", None, name)
    }

    /// The key of the same name in another namespace.
    #[must_use]
    pub fn with_namespace(&self, namespace: Option<String>) -> Self {
        KeyParts { namespace, ..KeyParts::clone(self) }.into()
    }

    /// The kind of the object, without version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// The namespace as Argo CD's wire types spell it: empty for cluster-scoped objects.
    pub fn namespace_or_empty(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

impl Deref for ObjectKey {
    type Target = KeyParts;

    fn deref(&self) -> &KeyParts {
        &self.0
    }
}

impl From<KeyParts> for ObjectKey {
    fn from(parts: KeyParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl From<ObjectKey> for KeyParts {
    fn from(key: ObjectKey) -> Self {
        Arc::unwrap_or_clone(key.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `apps/Deployment prod/web`, `Namespace prod`: the form used in messages.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// A kind without version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

impl GroupKind {
    /// A kind from its two parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}/{}", self.group, self.kind)
        }
    }
}

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

impl GroupVersionKind {
    /// Splits an `apiVersion` (`apps/v1`, `v1`) and joins it with a kind.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}
