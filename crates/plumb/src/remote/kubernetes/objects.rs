//! The objects of the Application that was read last: what the server shows of the cluster that it is deployed to.

use bytes::Bytes;
use futures::stream;
use http::Method;
use http_body_util::{BodyExt, StreamBody};
use plumb_kube::AnswerBody;
use serde_json::{Value, json};
use tower::BoxError;

use super::answer::{Answer, Failure};
use super::asked::Asked;
use super::discovery::{self, text};
use super::state::Door;
use crate::remote::api::Lines;
use crate::remote::query;

impl Door {
    /// The nodes of the tree of the Application; none before one was read.
    pub(super) async fn nodes(&self) -> Result<Vec<Value>, Failure> {
        let Some((namespace, name)) = self.current_app() else { return Ok(Vec::new()) };
        if let Some(nodes) = self.known_nodes() {
            return Ok(nodes);
        }
        let path = format!("/api/v1/applications/{}/resource-tree", query::part(&name));
        let tree = self.api().get_raw(&query::with(&path, &[("appNamespace", &namespace)])).await?;
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        self.note_nodes(nodes.clone());
        Ok(nodes)
    }

    pub(super) async fn object(&self, asked: &Asked) -> Result<Answer, Failure> {
        let nodes = self.nodes().await?;
        let kind = discovery::kind_of(&asked.group, &asked.plural, &nodes);
        if asked.name.is_empty() && asked.method == Method::GET && !asked.is_watch() {
            let of_kind = nodes.iter().filter(|node| {
                text(node, "group") == asked.group
                    && Some(text(node, "kind")) == kind
                    && (asked.namespace.is_empty() || text(node, "namespace") == asked.namespace)
            });
            let items: Vec<Value> = of_kind.map(metadata).collect();
            return Ok(Answer::Json(
                json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}),
            ));
        }
        let what = format!("{} {}", asked.plural, asked.name);
        let (Some(kind), Some((namespace, app))) = (kind, self.current_app()) else {
            return Err(Failure::missing(&what));
        };
        if asked.subresource == "log" {
            return self.log(asked, &namespace, &app).await;
        }
        let place = format!("/api/v1/applications/{}/resource", query::part(&app));
        let form = if asked.has_operations { "json-patch" } else { "merge-patch" };
        let patch_type = format!("application/{form}+json");
        let mut pairs = vec![
            ("appNamespace", namespace.as_str()),
            ("namespace", &asked.namespace),
            ("resourceName", &asked.name),
            ("group", &asked.group),
            ("version", &asked.version),
            ("kind", kind),
        ];
        let found = match asked.method {
            Method::GET => self.api().get_raw(&query::with(&place, &pairs)).await,
            Method::PATCH => {
                pairs.push(("patchType", &patch_type));
                let patch = json!(asked.body.to_string());
                self.api().patient(Method::POST, &query::with(&place, &pairs), Some(&patch)).await
            }
            Method::DELETE => {
                let orphan = text(&asked.body, "propagationPolicy") == "Orphan";
                let force = asked.body.get("gracePeriodSeconds") == Some(&json!(0));
                pairs.push(("orphan", if orphan { "true" } else { "false" }));
                pairs.push(("force", if force { "true" } else { "false" }));
                self.api().patient(Method::DELETE, &query::with(&place, &pairs), None).await?;
                return Ok(Answer::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})));
            }
            _ => return Err(Failure::new(405, "the server does not offer this")),
        };
        let manifest = text(&found?, "manifest").to_owned();
        let object = serde_json::from_str(&manifest);
        object
            .map(Answer::Json)
            .map_err(|_| Failure::new(500, format!("the server sent no object for {what}")))
    }

    async fn log(&self, asked: &Asked, namespace: &str, app: &str) -> Result<Answer, Failure> {
        let path =
            format!("/api/v1/applications/{}/pods/{}/logs", query::part(app), query::part(&asked.name));
        let mut pairs = vec![("appNamespace", namespace), ("namespace", &asked.namespace)];
        for name in ["container", "tailLines", "sinceSeconds", "previous", "follow"] {
            pairs.push((name, asked.query(name)));
        }
        let mut lines = self.api().lines(&query::with(&path, &pairs)).await?;
        let with_time = asked.query("timestamps") == "true";
        if asked.query("follow") == "true" {
            return Ok(Answer::Stream(log_stream(lines, with_time)));
        }
        let mut whole = String::new();
        let broken = |why: std::io::Error| Failure::new(503, why.to_string());
        while let Some(line) = lines.next().await.map_err(broken)? {
            whole.extend(log_line(&line, with_time));
        }
        Ok(Answer::Text(whole))
    }
}

/// A line of a log with its end; `None` for the mark of the end.
fn log_line(line: &str, with_time: bool) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let entry = message.get("result")?;
    if entry["last"] == true {
        return None;
    }
    let (time, content) = (text(entry, "timeStampStr"), text(entry, "content"));
    Some(if with_time && !time.is_empty() { format!("{time} {content}\n") } else { format!("{content}\n") })
}

fn log_stream(lines: Lines, with_time: bool) -> AnswerBody {
    let bodies = stream::try_unfold(lines, move |mut lines| async move {
        while let Some(line) = lines.next().await? {
            if let Some(text) = log_line(&line, with_time) {
                return Ok(Some((http_body::Frame::data(Bytes::from(text)), lines)));
            }
        }
        Ok::<_, BoxError>(None)
    });
    BodyExt::boxed_unsync(StreamBody::new(bodies))
}

/// What the tree knows of an object.
fn metadata(node: &Value) -> Value {
    let owners = node["parentRefs"].as_array().into_iter().flatten().map(|parent| {
        let (group, version) = (text(parent, "group"), text(parent, "version"));
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        json!({
            "apiVersion": api_version, "kind": parent["kind"], "name": parent["name"], "uid": parent["uid"],
        })
    });
    let mut metadata = json!({
        "name": node["name"], "uid": node["uid"], "resourceVersion": node["resourceVersion"],
        "ownerReferences": owners.collect::<Vec<_>>(),
    });
    for (field, from) in [("namespace", "namespace"), ("creationTimestamp", "createdAt")] {
        if !text(node, from).is_empty() {
            metadata[field] = node[from].clone();
        }
    }
    json!({"metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_logs() {
        let line = r#"{"result":{"content":"hello","timeStampStr":"2026-11-15T19:00:00Z","last":false}}"#;
        assert_eq!(log_line(line, false).as_deref(), Some("hello\n"));
        assert_eq!(log_line(line, true).as_deref(), Some("2026-11-15T19:00:00Z hello\n"));
        assert_eq!(log_line(r#"{"result":{"content":"","last":true}}"#, false), None);
    }

    #[test]
    fn a_node_has_its_owners() {
        let node = json!({"name": "p", "namespace": "a", "uid": "2", "kind": "Pod",
            "parentRefs": [{"group": "apps", "version": "v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}]});
        let metadata = metadata(&node);
        assert_eq!(metadata["metadata"]["ownerReferences"][0]["apiVersion"], "apps/v1");
        assert_eq!(metadata["metadata"]["namespace"], "a");
    }
}
