//! Reading the API server's audit log: who asked for what.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

/// One request that the API server answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`…
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The program that asked, in its own words.
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
    /// For example `plumb-admin` or `system:serviceaccount:argocd:plumb`.
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
    let content = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let mut events = Vec::new();
    // The last line may be half written.
    let complete = content.rfind('\n').map_or("", |end| &content[..end]);
    for line in complete.lines() {
        let event: AuditEvent =
            serde_json::from_str(line).with_context(|| format!("read {}: {line}", path.display()))?;
        if keep(&event) {
            events.push(event);
        }
    }
    Ok(events)
}
