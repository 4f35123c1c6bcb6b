//! The kinds of a server, with their schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use plumb_core::object::GroupVersionKind;
use plumb_core::schema::SchemaSet;
use serde_json::Value;

use crate::kind::Kind;
use crate::server::Server;

/// All kinds, and their schemas as plumb compiles them.
#[derive(Debug)]
pub struct Kinds {
    /// In the order of their names.
    pub all: Vec<Kind>,
    /// For the judge.
    pub schemas: SchemaSet,
}

/// Reads all kinds whose objects can be read and applied: those of Kubernetes, and those of this group. Other groups belong
/// to tests that run at the same time, and may be removed between two requests.
pub async fn discover(server: &Server, group: &str) -> Result<Kinds> {
    let index = server.get("/openapi/v3").await?.object("the index of schemas")?;
    let documents: BTreeSet<&String> = index["paths"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .filter(|path| match path.split('/').collect::<Vec<_>>()[..] {
            ["api", "v1"] => true,
            ["apis", of, _] => of == group || !of.contains('.') || of.ends_with(".k8s.io"),
            _ => false,
        })
        .collect();
    let mut all = Vec::new();
    let mut schemas = SchemaSet::default();
    for path in documents {
        let mut document = server.get(&format!("/openapi/v3/{path}")).await?.object(path)?;
        schemas = schemas.with_document(&document);
        let components = Arc::new(document["components"]["schemas"].take());
        let resources = server.get(&format!("/{path}")).await?.object(path)?;
        for resource in resources["resources"].as_array().into_iter().flatten() {
            all.extend(kind_of(resource, path, &components));
        }
    }
    all.sort_by_key(Kind::name);
    Ok(Kinds { all, schemas })
}

fn kind_of(resource: &Value, path: &str, components: &Arc<Value>) -> Option<Kind> {
    let plural = resource["name"].as_str()?;
    let verbs: Vec<&str> = resource["verbs"].as_array()?.iter().filter_map(Value::as_str).collect();
    let is_object = ["get", "create", "patch", "delete"].iter().all(|verb| verbs.contains(verb));
    if plural.contains('/') || !is_object {
        return None;
    }
    let api_version = path.strip_prefix("apis/").or_else(|| path.strip_prefix("api/"))?;
    let gvk = GroupVersionKind::from_api_version(api_version, resource["kind"].as_str()?);
    let schema = components.as_object()?.iter().find(|(_, schema)| is_of(schema, &gvk))?.0.clone();
    let namespaced = resource["namespaced"].as_bool()?;
    Some(Kind { gvk, plural: plural.to_owned(), namespaced, schemas: Arc::clone(components), schema })
}

fn is_of(schema: &Value, gvk: &GroupVersionKind) -> bool {
    let Some([one]) = schema["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) else {
        return false;
    };
    one["group"] == *gvk.group && one["version"] == *gvk.version && one["kind"] == *gvk.kind
}

impl Kinds {
    /// The kind of this name.
    pub fn find(&self, name: &str) -> Result<&Kind> {
        self.all.iter().find(|kind| kind.name() == name).with_context(|| format!("no kind {name}"))
    }
}
