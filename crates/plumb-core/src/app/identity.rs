//! Names with rules: which app, which commit.

use std::{fmt, str::FromStr};

/// Namespace and name of an Application object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId {
    /// Namespace of the Application.
    pub namespace: String,
    /// Name of the Application.
    pub name: String,
}

impl AppId {
    /// The name that tracking marks carry: the bare name in the control-plane namespace, `namespace_name`
    /// elsewhere.
    pub fn instance_name(&self, control_plane_namespace: &str) -> String {
        if self.namespace == control_plane_namespace {
            self.name.clone()
        } else {
            format!("{}_{}", self.namespace, self.name)
        }
    }
}

/// `namespace/name`, the qualified name of Argo CD.
impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A resolved Git commit: 40 (or 64) lowercase hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

/// The text is not a full commit hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a full commit hash (40 or 64 hex digits)")]
pub struct NotACommit(String);

impl CommitId {
    /// The hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first seven digits, as people read it.
    pub fn short(&self) -> &str {
        self.0.get(..7).unwrap_or(&self.0)
    }
}

impl FromStr for CommitId {
    type Err = NotACommit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { Ok(Self(text.to_ascii_lowercase())) } else { Err(NotACommit(text.to_owned())) }
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
