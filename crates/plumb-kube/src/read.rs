//! Reads: objects, lists, logs, events.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use serde::Deserialize;
use serde_json::Value;

use crate::catalog::Resource;
use crate::client::{Call, ClusterClient, broken};
use crate::error::ApiError;
use crate::transport::AnswerBody;

/// Selects objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In one namespace, or in all.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector, such as `metadata.name=argocd-cm`.
    pub fields: Option<String>,
}

/// Selects a part of a container's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Container name; needed if the pod has several.
    pub container: Option<String>,
    /// The last lines only.
    pub tail_lines: Option<u32>,
    /// The log of the container instance before the present one.
    pub previous: bool,
    /// Prefix each line with its time.
    pub timestamps: bool,
    /// Only lines younger than this many seconds.
    pub since_seconds: Option<u32>,
    /// At most this many bytes, the newest ones; 4 MiB if not set.
    pub limit_bytes: Option<u32>,
}

const PAGE: &str = "200";
pub(crate) const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// A log is read to be shown to a user.
const LOG_LIMIT: u32 = 4 << 20;
/// How long the API server may send nothing of a log that it does not follow.
const LOG_SILENCE: Duration = Duration::from_secs(30);

/// A longer line of a log is cut into several: a container may write without ever ending one.
const LONGEST_LINE: usize = 1 << 20;

/// The answer to a `SelfSubjectReview`.
#[derive(Deserialize)]
struct SelfSubjectReview {
    status: SelfSubject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelfSubject {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl ClusterClient {
    /// The user that this client is to the API server.
    pub async fn own_user(&self) -> Result<String, ApiError> {
        const PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review =
            serde_json::json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let call = Call::new(Method::POST, PATH.to_owned()).body("application/json", review.to_string());
        let answer = self.call(call).await?;
        let review: SelfSubjectReview = serde_json::from_slice(&answer.body)
            .map_err(|source| ApiError::unreadable(PATH, "a SelfSubjectReview", Some(source)))?;
        Ok(review.status.user_info.username)
    }

    /// One object in its preferred version; `None` if it does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Manifest>, ApiError> {
        let kind = key.group_kind();
        let resource = self
            .catalog()
            .preferred(&kind)
            .ok_or_else(|| ApiError::UnknownKind { kind: kind.to_string() })?;
        self.get_as(&resource, key.namespace.as_deref(), &key.name).await
    }

    /// One object in this version; `None` if it does not exist.
    pub async fn get_at(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Manifest>, ApiError> {
        let resource = self.catalog().find(gvk)?;
        self.get_as(&resource, namespace, name).await
    }

    pub(crate) async fn get_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Manifest>, ApiError> {
        let path = resource.object_path(namespace, name, None)?;
        match self.call(Call::new(Method::GET, path.clone())).await {
            Ok(answer) => Ok(Some(answer.manifest(&path)?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind, page by page.
    pub async fn list(
        &self,
        gvk: &GroupVersionKind,
        selection: &Selection,
    ) -> Result<Vec<Manifest>, ApiError> {
        let resource = self.catalog().find(gvk)?;
        self.list_as(&resource, selection, "application/json").await
    }

    /// Calls `take` for each object of a kind. At most one page of objects is in memory at a time.
    pub async fn for_each(
        &self,
        gvk: &GroupVersionKind,
        selection: &Selection,
        take: impl FnMut(Manifest),
    ) -> Result<(), ApiError> {
        let resource = self.catalog().find(gvk)?;
        self.read_pages(&resource, selection, "application/json", take).await
    }

    /// The metadata of all objects of a kind: names, labels, owners. Far smaller than the objects.
    pub async fn list_metadata(
        &self,
        resource: &Resource,
        selection: &Selection,
    ) -> Result<Vec<Manifest>, ApiError> {
        self.list_as(resource, selection, METADATA_ONLY).await
    }

    async fn list_as(
        &self,
        resource: &Resource,
        selection: &Selection,
        accept: &'static str,
    ) -> Result<Vec<Manifest>, ApiError> {
        let mut found = Vec::new();
        self.read_pages(resource, selection, accept, |object| found.push(object)).await?;
        Ok(found)
    }

    async fn read_pages(
        &self,
        resource: &Resource,
        selection: &Selection,
        accept: &'static str,
        mut take: impl FnMut(Manifest),
    ) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
            #[serde(default)]
            items: Vec<Value>,
        }
        #[derive(Default, Deserialize)]
        struct ListMeta {
            #[serde(default, rename = "continue")]
            next: String,
        }
        let path = resource.collection_path(selection.namespace.as_deref())?;
        let mut next = String::new();
        loop {
            let call = Call::new(Method::GET, path.clone()).accepting(accept).query("limit", PAGE);
            let mut call = selection.narrow(call);
            if !next.is_empty() {
                call = call.query("continue", &next);
            }
            let answer = self.call(call).await?;
            let list: List = serde_json::from_slice(&answer.body)
                .map_err(|source| ApiError::unreadable(&path, "a list of objects", Some(source)))?;
            for item in list.items {
                take(typed(item, resource, &path)?);
            }
            next = list.metadata.next;
            if next.is_empty() {
                return Ok(());
            }
        }
    }

    /// The log of one container, the newest 4 MiB of it.
    pub async fn logs(&self, namespace: &str, pod: &str, options: &LogOptions) -> Result<String, ApiError> {
        let limit = options.limit_bytes.unwrap_or(LOG_LIMIT).min(LOG_LIMIT);
        let mut log = NewestLines { text: Vec::new(), limit: usize::try_from(limit).unwrap_or_default() };
        // The limit of the API server, `limitBytes`, would keep the oldest lines instead.
        let call = log_call(namespace, pod, options)?;
        let mut body = self.open(&call).await?;
        loop {
            let frame = tokio::time::timeout(LOG_SILENCE, body.frame()).await;
            let late = |_| ApiError::TimedOut { request: "GET log".to_owned(), after: LOG_SILENCE };
            let Some(frame) = frame.map_err(late)? else { return Ok(log.end()) };
            if let Ok(data) = frame.map_err(|source| broken("GET log", source))?.into_data() {
                log.add(&data);
            }
        }
    }

    /// Streams the log of one container until the container ends.
    pub async fn follow_logs(
        &self,
        namespace: &str,
        pod: &str,
        options: &LogOptions,
    ) -> Result<LogStream, ApiError> {
        let call = log_call(namespace, pod, options)?.query("follow", "true");
        Ok(LogStream { body: self.open(&call).await?, pending: Vec::new() })
    }

    /// The events about one object, oldest first. plumb does not watch events: there are many, and they are
    /// read seldom.
    pub async fn events_of(&self, uid: &str, namespace: Option<&str>) -> Result<Vec<Manifest>, ApiError> {
        let selection = Selection {
            // Kubernetes keeps events about cluster-scoped objects in `default`.
            namespace: Some(namespace.unwrap_or("default").to_owned()),
            fields: Some(format!("involvedObject.uid={uid}")),
            labels: None,
        };
        let mut events = self.list(&GroupVersionKind::from_api_version("v1", "Event"), &selection).await?;
        events.sort_by_cached_key(|event| {
            let at = |field: &str| event.value().get(field).and_then(Value::as_str).unwrap_or_default();
            at("lastTimestamp").max(at("eventTime")).to_owned()
        });
        Ok(events)
    }
}

/// The end of a log.
struct NewestLines {
    text: Vec<u8>,
    limit: usize,
}

impl NewestLines {
    fn add(&mut self, data: &[u8]) {
        self.text.extend_from_slice(data);
        // Not with each part: what is kept moves each time.
        if self.text.len() > 2 * self.limit + LONGEST_LINE {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let Some(start) = self.text.len().checked_sub(self.limit).filter(|start| *start > 0) else { return };
        let line = self
            .text
            .get(start - 1..self.text.len() - 1)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        // A line that is longer than all that may be kept is cut.
        self.text.drain(..line.map_or(start, |line| start + line));
    }

    /// The newest lines.
    fn end(mut self) -> String {
        self.cut();
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

/// A log that is still being written.
pub struct LogStream {
    body: AnswerBody,
    pending: Vec<u8>,
}

impl LogStream {
    /// The next line, without its end, or a part of one that is very long; `None` when the container has ended.
    pub async fn next_line(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()));
            }
            if self.pending.len() > LONGEST_LINE {
                self.pending.push(b'\n');
                continue;
            }
            match self.body.frame().await {
                Some(frame) => {
                    let frame = frame.map_err(|source| broken("GET log", source))?;
                    if let Ok(data) = frame.into_data() {
                        self.pending.extend_from_slice(&data);
                    }
                }
                None if self.pending.is_empty() => return Ok(None),
                None => self.pending.push(b'\n'),
            }
        }
    }
}

fn log_call(namespace: &str, pod: &str, options: &LogOptions) -> Result<Call, ApiError> {
    let path = pods().object_path(Some(namespace), pod, Some("log"))?;
    let mut call = Call::new(Method::GET, path).accepting("*/*");
    if let Some(container) = &options.container {
        call = call.query("container", container);
    }
    if let Some(lines) = options.tail_lines {
        call = call.query("tailLines", &lines.to_string());
    }
    if let Some(seconds) = options.since_seconds {
        call = call.query("sinceSeconds", &seconds.to_string());
    }
    for (name, wanted) in [("previous", options.previous), ("timestamps", options.timestamps)] {
        if wanted {
            call = call.query(name, "true");
        }
    }
    Ok(call)
}

fn pods() -> Resource {
    Resource {
        gvk: GroupVersionKind::from_api_version("v1", "Pod"),
        plural: "pods".to_owned(),
        namespaced: true,
    }
}

impl Selection {
    pub(crate) fn narrow(&self, call: Call) -> Call {
        let call = match &self.labels {
            Some(labels) => call.query("labelSelector", labels),
            None => call,
        };
        match &self.fields {
            Some(fields) => call.query("fieldSelector", fields),
            None => call,
        }
    }
}

/// The items of a list have no `apiVersion` and `kind`; those of the list hold for all.
fn typed(mut item: Value, resource: &Resource, path: &str) -> Result<Manifest, ApiError> {
    if let Value::Object(map) = &mut item {
        // With metadata only, the server sets the kind `PartialObjectMetadata` in place of the object's own.
        if map.get("kind").and_then(Value::as_str) == Some("PartialObjectMetadata") {
            map.remove("apiVersion");
            map.remove("kind");
        }
        map.entry("apiVersion").or_insert_with(|| Value::String(resource.api_version()));
        map.entry("kind").or_insert_with(|| Value::String(resource.gvk.kind.clone()));
    }
    Manifest::new(item).map_err(|_| ApiError::unreadable(path, "a list of objects", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_log_the_newest_lines_are_kept() {
        let check = |limit: usize, parts: &[&str], expected: &str| {
            let mut log = NewestLines { text: Vec::new(), limit };
            for part in parts {
                log.add(part.as_bytes());
            }
            assert_eq!(log.end(), expected, "{parts:?}");
        };
        check(100, &["one\n", "two\n"], "one\ntwo\n");
        check(8, &["one\ntwo\nthr", "ee\n"], "three\n");
        check(9, &["one\ntwo\nthree\n"], "three\n");
        check(10, &["one\ntwo\nthree\n"], "two\nthree\n");
        check(4, &["a long line"], "line");
        check(5, &["a long line\n"], "line\n");
        check(0, &["one\n"], "");
        let many = "0123456789abcde\n".repeat(1 << 17);
        check(32, &[&many, &many, "end\n"], "0123456789abcde\nend\n");
    }
}
