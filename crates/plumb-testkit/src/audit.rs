//! Reading the API server's audit log: who asked for what.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;

/// One request that the API server answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`…
    pub verb: String,
    /// `ResponseStarted` for a watch that begins, `ResponseComplete` for a request that has ended.
    #[serde(default)]
    pub stage: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The user agent of the client.
    #[serde(default)]
    pub user_agent: String,
    /// Who asked.
    pub user: AuditUser,
    /// The object, if the request was about one or a kind.
    #[serde(default)]
    pub object_ref: Option<AuditObject>,
    /// The answer.
    #[serde(default)]
    pub response_status: Option<AuditResponse>,
}

/// Who asked.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditUser {
    /// For example `plumb-admin` or `system:serviceaccount:argocd:plumb`. Empty if the API server did not accept who
    /// asked.
    #[serde(default)]
    pub username: String,
}

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// Plural, for example `configmaps`.
    pub resource: String,
    /// For example `status`.
    pub subresource: String,
    /// Empty for cluster-wide ones.
    pub namespace: String,
    /// Empty for a list.
    pub name: String,
    /// Empty for the core group.
    pub api_group: String,
}

/// How it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditResponse {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl AuditEvent {
    /// Whether the request asked for a change that was meant to last.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !self.request_uri.contains("dryRun=All")
    }
}

/// All events so far that the filter keeps, oldest first. An event is written when its request
/// ends, which may be a moment after the client has the answer.
pub fn read(path: &Path, keep: impl Fn(&AuditEvent) -> bool) -> Result<Vec<AuditEvent>> {
    Ok(read_after(path, 0)?.into_iter().filter(keep).collect())
}

/// All events after a position in the file, which is a size that it had before.
pub fn read_after(path: &Path, position: u64) -> Result<Vec<AuditEvent>> {
    let name = || format!("read {}", path.display());
    let mut file = fs::File::open(path).with_context(name)?;
    // With the byte before: a line that was half written at that time counts as before.
    file.seek(SeekFrom::Start(position.saturating_sub(1))).with_context(name)?;
    let mut content = String::new();
    file.read_to_string(&mut content).with_context(name)?;
    let start = if position == 0 { Some(0) } else { content.find('\n').map(|end| end + 1) };
    let end = content.rfind('\n');
    // The last line may be half written now.
    let complete = start.zip(end).and_then(|(start, end)| content.get(start..end)).unwrap_or_default();
    let read = |line| serde_json::from_str(line).with_context(|| format!("read {}: {line}", path.display()));
    complete.lines().map(read).collect()
}
