//! The fields that a valid object of a kind needs.

use std::time::Duration;

use anyhow::{Context, Result};
use plumb_core::yaml::{Limits, parse_documents};
use plumb_testkit::{TestNamespace, wait};
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::server::Server;

/// The required fields of every built-in kind.
const SKELETONS: &str = include_str!("../fixtures/skeletons.yaml");
/// Custom resources in the form of well-known operators.
const DEFINITIONS: &str = include_str!("../fixtures/definitions.yaml");
/// Objects as charts render them.
const CHARTS: &str = include_str!("../fixtures/charts.yaml");
/// The group of the custom resources, unless a test has its own.
pub const GROUP: &str = "shapes.plumb.dev";

/// The skeletons of all built-in kinds, and the samples' custom resource definitions.
#[derive(Debug)]
pub struct Skeletons {
    built_in: Vec<Value>,
    charts: Vec<Value>,
    /// Custom resource definitions to install.
    pub definitions: Vec<Value>,
    /// Their group.
    pub group: String,
}

impl Skeletons {
    /// Reads the fixtures.
    pub fn read() -> Result<Self> {
        Self::read_with(GROUP)
    }

    /// Reads the fixtures, with the custom resources in a separate group, so that concurrent tests do not remove each
    /// other's kinds.
    pub fn read_with(group: &str) -> Result<Self> {
        let with_group = |text: &str| documents(&text.replace(GROUP, group));
        Ok(Self {
            built_in: documents(SKELETONS)?,
            charts: with_group(CHARTS)?,
            definitions: with_group(DEFINITIONS)?,
            group: group.to_owned(),
        })
    }

    /// Installs the custom resource definitions, and waits until their schemas are published.
    pub async fn install(&self, place: &TestNamespace, server: &Server) -> Result<()> {
        for definition in &self.definitions {
            place.apply(definition).await?;
        }
        // A definition is served shortly before its schema is published, and there is no event for that.
        let group = &self.group;
        let published = async || {
            let document = server.get(&format!("/openapi/v3/apis/{group}/v1")).await.ok()?;
            let resources = server.get(&format!("/apis/{group}/v1")).await.ok()?;
            let schemas: Vec<String> =
                document.body["components"]["schemas"].as_object()?.keys().cloned().collect();
            let kinds: Vec<&str> =
                resources.body["resources"].as_array()?.iter().filter_map(|r| r["kind"].as_str()).collect();
            Some(self.definitions.iter().all(|definition| {
                let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
                kinds.contains(&kind) && schemas.iter().any(|name| name.ends_with(&format!(".{kind}")))
            }))
        };
        let limit = Duration::from_mins(2);
        wait::until_seen(limit, "the schemas are published", published, |done| *done == Some(true)).await?;
        Ok(())
    }

    /// An object as a chart renders it, if there is one of this kind.
    pub fn chart(&self, kind: &Kind, name: &str, namespace: &str) -> Option<Value> {
        let found = self.charts.iter().find(|object| is_of(object, kind))?;
        Some(named(found.clone(), kind, name, namespace))
    }

    /// The skeleton of an object of this name; `None` for a built-in kind that has none.
    pub fn of(&self, kind: &Kind, name: &str, namespace: &str) -> Option<Value> {
        let object = if kind.is_built_in() {
            self.built_in.iter().find(|skeleton| is_of(skeleton, kind))?.clone()
        } else {
            json!({"apiVersion": kind.gvk.api_version(), "kind": kind.gvk.kind})
        };
        Some(named(object, kind, name, namespace))
    }
}

fn is_of(object: &Value, kind: &Kind) -> bool {
    object["apiVersion"] == *kind.gvk.api_version() && object["kind"] == *kind.gvk.kind
}

fn named(mut object: Value, kind: &Kind, name: &str, namespace: &str) -> Value {
    fill_in(&mut object, name, namespace);
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!(name);
    }
    if kind.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn documents(text: &str) -> Result<Vec<Value>> {
    let documents = parse_documents(text, &Limits::default()).context("read a fixture")?;
    Ok(documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect())
}

fn fill_in(value: &mut Value, name: &str, namespace: &str) {
    match value {
        Value::String(text) => *text = text.replace("NAMESPACE", namespace).replace("NAME", name),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, name, namespace)),
        Value::Object(map) => map.values_mut().for_each(|item| fill_in(item, name, namespace)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
