//! Applications and their reports.

use bytes::Bytes;
use futures::stream;
use http::Method;
use http_body_util::{BodyExt, StreamBody};
use plumb_core::sync::deletion::CASCADE;
use plumb_crd::annotations::REFRESH;
use plumb_crd::{Application, DriftReport};
use plumb_kube::AnswerBody;
use serde_json::{Value, json};
use tower::BoxError;

use super::answer::{Answer, Failure};
use super::asked::Asked;
use super::discovery::text;
use super::state::Door;
use crate::remote::api::Lines;
use crate::remote::query;

/// An object of the API with the fields that protobuf has no room for.
pub(super) fn typed(mut object: Value, kind: &str) -> Value {
    object["apiVersion"] = json!(Application::API_VERSION);
    object["kind"] = json!(kind);
    object
}

fn list(kind: &str, items: Vec<Value>, version: &Value) -> Value {
    let mut list = json!({
        "apiVersion": Application::API_VERSION, "kind": format!("{kind}List"),
        "metadata": {"resourceVersion": version},
    });
    list["items"] = Value::Array(items);
    list
}

impl Door {
    pub(super) async fn application(&self, asked: &Asked) -> Result<Answer, Failure> {
        let namespace = self.app_namespace(&asked.namespace);
        match (&asked.method, asked.name.as_str()) {
            (&Method::GET, "") if asked.is_watch() => self.watch_apps(asked, namespace).await,
            (&Method::GET, "") => self.list_apps(asked, namespace).await,
            (&Method::GET, name) => self.app(namespace, name, None).await.map(Answer::Json),
            (&Method::POST, _) => self.create_app(asked).await.map(Answer::Json),
            (&Method::PATCH, name) => self.patch_app(asked, namespace, name).await.map(Answer::Json),
            (&Method::DELETE, name) => self.delete_app(namespace, name).await,
            _ => Err(Failure::new(405, "the server does not offer this")),
        }
    }

    /// The namespace as the API takes it: the one of the control plane needs no name, and may have another one there.
    fn app_namespace<'n>(&self, namespace: &'n str) -> &'n str {
        if namespace == self.home() { "" } else { namespace }
    }

    async fn app(&self, namespace: &str, name: &str, refresh: Option<&str>) -> Result<Value, Failure> {
        let path = format!("/api/v1/applications/{}", query::part(name));
        let mut pairs = vec![("appNamespace", namespace)];
        pairs.extend(refresh.map(|how| ("refresh", how)));
        let found = self.api().patient(Method::GET, &query::with(&path, &pairs), None).await;
        let found =
            found.map_err(|why| Failure::from(why).hidden_is_missing(&format!("application {name}")))?;
        self.note_app(namespace, name);
        Ok(typed(found, Application::KIND))
    }

    async fn list_apps(&self, asked: &Asked, namespace: &str) -> Result<Answer, Failure> {
        if asked.wants_table {
            return Err(Failure::new(406, "the server has no tables"));
        }
        let mut pairs = vec![("selector", asked.query("labelSelector"))];
        // Without a namespace the API lists all, which is what commands mean.
        let everywhere = asked.namespace.is_empty();
        let home;
        if !everywhere {
            home = if namespace.is_empty() { self.control_namespace().await } else { namespace.to_owned() };
            pairs.push(("appNamespace", &home));
        }
        pairs.extend(asked.selected_name().map(|name| ("name", name)));
        let found = self.api().get_raw(&query::with("/api/v1/applications", &pairs)).await?;
        let items = found["items"].as_array().cloned().unwrap_or_default();
        let items = items.into_iter().map(|app| typed(app, Application::KIND)).collect();
        Ok(Answer::Json(list(Application::KIND, items, &found["metadata"]["resourceVersion"])))
    }

    async fn watch_apps(&self, asked: &Asked, namespace: &str) -> Result<Answer, Failure> {
        if asked.query("sendInitialEvents") == "true" {
            // The client lists first, then.
            return Err(Failure::new(400, "the server streams no lists"));
        }
        // Without a version the stream begins with what is there: nothing is missed between the list and the stream.
        let mut pairs = vec![("appNamespace", namespace), ("selector", asked.query("labelSelector"))];
        pairs.extend(asked.selected_name().map(|name| ("name", name)));
        let path = query::with("/api/v1/stream/applications", &pairs);
        let lines = self.api().lines(&path).await?;
        Ok(Answer::Stream(events(lines)))
    }

    async fn create_app(&self, asked: &Asked) -> Result<Value, Failure> {
        let validate = if self.skips_validation() { "false" } else { "true" };
        let path = query::with("/api/v1/applications", &[("validate", validate)]);
        let mut app = asked.body.clone();
        if self.app_namespace(text(&app["metadata"], "namespace")).is_empty()
            && let Some(metadata) = app["metadata"].as_object_mut()
        {
            metadata.remove("namespace");
        }
        let written = self.api().patient(Method::POST, &path, Some(&app)).await?;
        Ok(typed(written, Application::KIND))
    }

    async fn patch_app(&self, asked: &Asked, namespace: &str, name: &str) -> Result<Value, Failure> {
        let place = format!("/api/v1/applications/{}", query::part(name));
        let body = &asked.body;
        if let Some(operation) = body.get("operation").filter(|operation| operation.is_object()) {
            return self.operate(namespace, name, operation).await;
        }
        if text(&body["status"]["operationState"], "phase") == "Terminating" {
            let path = query::with(&format!("{place}/operation"), &[("appNamespace", namespace)]);
            self.api().patient(Method::DELETE, &path, None).await?;
            return self.app(namespace, name, None).await;
        }
        if let Some(how) = body.pointer("/metadata/annotations").and_then(|all| all.get(REFRESH)?.as_str()) {
            return self.app(namespace, name, Some(how)).await;
        }
        let kind = if asked.has_operations { "json" } else { "merge" };
        let request = json!({
            "name": name, "appNamespace": namespace, "patchType": kind, "patch": body.to_string(),
        });
        let written = self.api().patient(Method::PATCH, &place, Some(&request)).await?;
        Ok(typed(written, Application::KIND))
    }

    /// Requests a sync, or a rollback: that is a sync with the sources of a past one.
    async fn operate(&self, namespace: &str, name: &str, operation: &Value) -> Result<Value, Failure> {
        let place = format!("/api/v1/applications/{}", query::part(name));
        let sync = &operation["sync"];
        let (path, mut request) = if sync.get("source").is_some() || sync.get("sources").is_some() {
            let app = self.app(namespace, name, None).await?;
            let id = past_sync(&app, sync)
                .ok_or_else(|| Failure::new(404, "the history has no such sync any more"))?;
            let request = json!({"id": id, "prune": sync["prune"], "dryRun": sync["dryRun"]});
            (format!("{place}/rollback"), request)
        } else {
            (format!("{place}/sync"), sync_request(operation))
        };
        request["name"] = json!(name);
        request["appNamespace"] = json!(namespace);
        let written = self.api().patient(Method::POST, &path, Some(&request)).await?;
        Ok(typed(written, Application::KIND))
    }

    async fn delete_app(&self, namespace: &str, name: &str) -> Result<Answer, Failure> {
        let app = self.app(namespace, name, None).await?;
        // Commands have set the finalizer before they delete: it says what happens to the objects.
        let finalizers = app["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let cascade = finalizers.iter().filter_map(Value::as_str).find(|entry| entry.starts_with(CASCADE));
        let mut pairs = vec![("appNamespace", namespace)];
        match cascade {
            None => pairs.push(("cascade", "false")),
            Some(finalizer) => {
                let policy = finalizer.strip_prefix(CASCADE).map_or("", |rest| rest.trim_start_matches('/'));
                let policy = if policy.is_empty() { "foreground" } else { policy };
                pairs.extend([("cascade", "true"), ("propagationPolicy", policy)]);
            }
        }
        let path = query::with(&format!("/api/v1/applications/{}", query::part(name)), &pairs);
        self.api().patient(Method::DELETE, &path, None).await?;
        Ok(Answer::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})))
    }

    /// The reports on Applications. Argo CD's own server has none.
    pub(super) async fn report(&self, asked: &Asked) -> Result<Answer, Failure> {
        if asked.method != Method::GET {
            return Err(Failure::new(405, "reports are written by plumb alone"));
        }
        if asked.is_watch() {
            return Err(Failure::new(404, "the server streams no reports"));
        }
        if asked.wants_table {
            return Err(Failure::new(406, "the server has no tables"));
        }
        let pairs = [("appNamespace", self.app_namespace(&asked.namespace)), ("name", &asked.name)];
        let found = self.api().get_raw(&query::with("/api/v1/driftreports", &pairs)).await;
        let found = found.map_err(|why| Failure::from(why).hidden_is_missing("the report"))?;
        let texts = found["items"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut items = texts.filter_map(|item| serde_json::from_str::<Value>(item).ok());
        if !asked.name.is_empty() {
            return items.next().map(Answer::Json).ok_or_else(|| Failure::missing("the report"));
        }
        Ok(Answer::Json(json!({
            "apiVersion": DriftReport::API_VERSION, "kind": "DriftReportList", "metadata": {},
            "items": items.collect::<Vec<_>>(),
        })))
    }
}

/// The id of the past sync with these sources and revisions.
fn past_sync(app: &Value, sync: &Value) -> Option<i64> {
    let history = app["status"]["history"].as_array()?;
    let fields = ["source", "sources", "revision", "revisions"];
    let is_empty = |value: &Value| {
        value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
    };
    let same = |entry: &&Value| {
        fields.iter().all(|field| {
            let (wanted, has) = (&sync[*field], &entry[*field]);
            wanted == has || (is_empty(wanted) && (is_empty(has) || *field == "source"))
        })
    };
    history.iter().rev().find(same)?["id"].as_i64()
}

/// The request of a sync from the operation that a command would write.
fn sync_request(operation: &Value) -> Value {
    let sync = &operation["sync"];
    let mut request = json!({});
    let fields = [
        ("prune", "prune"),
        ("dryRun", "dryRun"),
        ("revision", "revision"),
        ("revisions", "revisions"),
        ("syncStrategy", "strategy"),
        ("resources", "resources"),
        ("manifests", "manifests"),
    ];
    for (from, to) in fields {
        if let Some(value) = sync.get(from) {
            request[to] = value.clone();
        }
    }
    if let Some(revisions) = sync["revisions"].as_array() {
        request["sourcePositions"] = (1..=revisions.len()).map(|position| json!(position)).collect();
    }
    if let Some(options) = sync.get("syncOptions") {
        request["syncOptions"] = json!({"items": options});
    }
    for (from, to) in [("info", "infos"), ("retry", "retryStrategy")] {
        if let Some(value) = operation.get(from) {
            request[to] = value.clone();
        }
    }
    request
}

/// The events of a stream, as a watch has them.
fn events(lines: Lines) -> AnswerBody {
    let bodies = stream::try_unfold(lines, |mut lines| async move {
        loop {
            let Some(line) = lines.next().await? else { return Ok::<_, BoxError>(None) };
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            let Some(result) = message.get("result") else {
                // The client opens the stream again.
                return Ok(None);
            };
            let event = json!({
                "type": result["type"], "object": typed(result["application"].clone(), Application::KIND),
            });
            return Ok(Some((http_body::Frame::data(Bytes::from(format!("{event}\n"))), lines)));
        }
    });
    BodyExt::boxed_unsync(StreamBody::new(bodies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_becomes_a_request() {
        let operation = json!({
            "sync": {"prune": true, "dryRun": false, "syncOptions": ["A=b"], "revisions": ["a", "b"],
                "syncStrategy": {"hook": {"force": true}}},
            "info": [{"name": "a", "value": "b"}], "retry": {"limit": 2}, "initiatedBy": {"username": "x"},
        });
        assert_eq!(
            sync_request(&operation),
            json!({
                "prune": true, "dryRun": false, "syncOptions": {"items": ["A=b"]}, "revisions": ["a", "b"],
                "sourcePositions": [1, 2], "strategy": {"hook": {"force": true}},
                "infos": [{"name": "a", "value": "b"}], "retryStrategy": {"limit": 2},
            })
        );
    }

    #[test]
    fn a_rollback_names_a_past_sync() {
        let app = json!({"status": {"history": [
            {"id": 1, "revision": "a", "source": {"repoURL": "r"}},
            {"id": 2, "revision": "b", "source": {"repoURL": "r"}},
            {"id": 3, "revisions": ["c"], "sources": [{"repoURL": "r"}]},
        ]}});
        let id = |sync: Value| past_sync(&app, &sync);
        assert_eq!(id(json!({"revision": "a", "source": {"repoURL": "r"}})), Some(1));
        assert_eq!(id(json!({"revisions": ["c"], "sources": [{"repoURL": "r"}]})), Some(3));
        assert_eq!(id(json!({"revision": "z", "source": {"repoURL": "r"}})), None);
    }
}
