//! Requests to the API server, as JSON in and JSON out.

use anyhow::{Context, Result, ensure};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::kind::Kind;

/// The response of the server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP code.
    pub code: StatusCode,
    /// An object, or a `Status`.
    pub body: Value,
}

impl Answer {
    /// True for a success.
    pub fn is_fine(&self) -> bool {
        self.code.is_success()
    }

    /// The object, or the server's message as an error.
    pub fn object(self, what: &str) -> Result<Value> {
        anyhow::ensure!(self.is_fine(), "{what}: {} {}", self.code, self.message());
        Ok(self.body)
    }

    /// The server's error message.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// Whether the request is a dry-run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A real request.
    Real,
    /// A dry-run.
    DryRun,
}

/// An API server.
#[derive(Clone)]
pub struct Server {
    client: Client,
}

impl Server {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// One request.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let send = async || {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header(http::header::CONTENT_TYPE, content_type)
                .body(Body::from(body.clone()))?;
            self.client.send(request).await.with_context(|| path.to_owned())
        };
        // The server may close an idle connection at this moment, before it reads the request. If it closes the connection
        // repeatedly while it is healthy, it fails on this request.
        let mut answer = send().await;
        for _ in 0..2 {
            if answer.is_err() {
                answer = send().await;
            }
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let ready = Request::builder().uri("/readyz").body(Body::empty())?;
                let ready = self.client.send(ready).await?;
                ensure!(ready.status().is_success(), "the server is not ready, and {error:#}");
                let body = json!({"code": 500, "message": format!("{error:#}")});
                return Ok(Answer { code: StatusCode::INTERNAL_SERVER_ERROR, body });
            }
        };
        let code = answer.status();
        let bytes = answer.into_body().collect().await.with_context(|| path.to_owned())?.to_bytes();
        Ok(Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.call(Method::GET, path, "application/json", None).await
    }

    /// The live object.
    pub async fn read(&self, kind: &Kind, object: &Value) -> Result<Answer> {
        self.get(&kind.path_of(object)).await
    }

    /// Forced server-side apply, as plumb does it.
    pub async fn apply(&self, kind: &Kind, object: &Value, effect: Effect) -> Result<Answer> {
        let path = format!(
            "{}?fieldManager={}&force=true&fieldValidation=Ignore{}",
            kind.path_of(object),
            plumb_core::tracking::FIELD_MANAGER,
            suffix(effect)
        );
        self.call(Method::PATCH, &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// Creates an object as another writer.
    pub async fn create(&self, kind: &Kind, object: &Value, manager: &str) -> Result<Answer> {
        let path = format!("{}?fieldManager={manager}", kind.collection_of(object));
        self.call(Method::POST, &path, "application/json", Some(object)).await
    }

    /// Sends a JSON patch as another writer.
    pub async fn patch(
        &self,
        kind: &Kind,
        object: &Value,
        manager: &str,
        patch: &Value,
        effect: Effect,
    ) -> Result<Answer> {
        let place = format!("{}?fieldManager={manager}{}", kind.path_of(object), suffix(effect));
        self.call(Method::PATCH, &place, "application/json-patch+json", Some(patch)).await
    }

    /// Deletes immediately; a missing object is not an error.
    pub async fn delete(&self, kind: &Kind, object: &Value) -> Result<()> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        self.call(Method::DELETE, &kind.path_of(object), "application/json", Some(&options)).await?;
        // Finalizers of the sample would block the deletion forever.
        let patch = json!({"metadata": {"finalizers": null}});
        self.call(Method::PATCH, &kind.path_of(object), "application/merge-patch+json", Some(&patch)).await?;
        Ok(())
    }
}

fn suffix(effect: Effect) -> &'static str {
    match effect {
        Effect::Real => "",
        Effect::DryRun => "&dryRun=All",
    }
}
