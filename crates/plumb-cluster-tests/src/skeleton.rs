//! The least that makes an object of a kind valid.

use anyhow::{Context, Result};
use plumb_core::yaml::{Limits, parse_documents};
use serde_json::{Value, json};

use crate::kinds::Kind;

/// What every built-in kind needs.
const SKELETONS: &str = include_str!("../fixtures/skeletons.yaml");
/// Custom resources whose shapes are those of well-known operators.
const DEFINITIONS: &str = include_str!("../fixtures/definitions.yaml");

/// The skeletons of all built-in kinds, and the samples' custom resource definitions.
#[derive(Debug)]
pub struct Skeletons {
    built_in: Vec<Value>,
    /// Custom resource definitions to install.
    pub definitions: Vec<Value>,
}

impl Skeletons {
    /// Reads the fixtures.
    pub fn read() -> Result<Self> {
        Ok(Self { built_in: documents(SKELETONS)?, definitions: documents(DEFINITIONS)? })
    }

    /// The skeleton of an object of this name; `None` for a built-in kind that has none.
    pub fn of(&self, kind: &Kind, name: &str, namespace: &str) -> Option<Value> {
        let mut object = if kind.is_built_in() {
            let known = self.built_in.iter().find(|skeleton| {
                skeleton["apiVersion"] == *kind.gvk.api_version() && skeleton["kind"] == *kind.gvk.kind
            });
            known?.clone()
        } else {
            json!({"apiVersion": kind.gvk.api_version(), "kind": kind.gvk.kind})
        };
        fill_in(&mut object, name, namespace);
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!(name);
        }
        if kind.namespaced {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Some(object)
    }
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
