//! The way in: which part of the API a request is for.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use plumb_kube::{AnswerBody, ClusterClient, Lane, RequestBody, Transport};
use serde_json::json;
use tower::BoxError;

use super::answer::{Answer, Failure, response};
use super::asked::Asked;
use super::discovery;
use super::registrations::is_registration;
use super::state::Door;
use crate::kinds;

impl Door {
    /// A client whose requests come here.
    pub(crate) fn client(self: &Arc<Self>) -> ClusterClient {
        let door = Arc::clone(self);
        let lane = Lane::new(tower::service_fn(move |request: Request<RequestBody>| {
            let door = Arc::clone(&door);
            async move { Ok::<_, BoxError>(door.answer(request).await) }
        }));
        let server = self.api().base().to_owned();
        let client = ClusterClient::over(Transport { requests: lane.clone(), watches: lane }, server);
        client.assume_kinds(&kinds::known());
        client
    }

    async fn answer(&self, request: Request<RequestBody>) -> Response<AnswerBody> {
        let (head, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map_or_else(|never: Infallible| match never {}, http_body_util::Collected::to_bytes);
        let asked = Asked::of(&Request::from_parts(head, ()), &body);
        response(self.dispatch(&asked).await)
    }

    async fn dispatch(&self, asked: &Asked) -> Result<Answer, Failure> {
        match (asked.group.as_str(), asked.plural.as_str()) {
            ("", "") => self.about(asked).await,
            ("argoproj.io", "applications") => self.application(asked).await,
            ("argoproj.io", "appprojects") => self.project(asked).await,
            ("plumb.dev", "driftreports") => self.report(asked).await,
            ("", "secrets") if asked.namespace == self.home() && is_registration(asked) => {
                self.secret(asked).await
            }
            ("", "configmaps") if asked.namespace == self.home() && asked.name.starts_with("argocd-") => {
                setting(asked)
            }
            _ => self.object(asked).await,
        }
    }

    /// Kinds, schemas, version.
    async fn about(&self, asked: &Asked) -> Result<Answer, Failure> {
        match asked.path.as_str() {
            "/api" | "/apis" => {
                let groups = discovery::groups(asked.path == "/api", &self.nodes().await?);
                Ok(Answer::Typed(groups, discovery::CONTENT_TYPE))
            }
            // Not that of a cluster: a client that lists in pages asks for less.
            "/version" => Ok(Answer::Json(json!({"major": "1", "minor": "26", "gitVersion": ""}))),
            "/openapi/v3" => Ok(Answer::Json(json!({"paths": {}}))),
            path => Err(Failure::missing(path)),
        }
    }
}

/// The server shows Applications of all namespaces that its settings allow. No other settings are shown.
fn setting(asked: &Asked) -> Result<Answer, Failure> {
    if asked.method == Method::GET && asked.name == "argocd-cmd-params-cm" {
        let metadata = json!({"name": asked.name, "namespace": asked.namespace});
        return Ok(Answer::Json(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"application.namespaces": "*"},
        })));
    }
    Err(Failure::unknown("settings"))
}
