//! The kinds that the server shows: those of every command, and those of the objects of one Application.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::kinds;

/// The content type of the lists of kinds.
pub(super) const CONTENT_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A node of a tree, as the API names its fields.
pub(super) fn text<'v>(node: &'v Value, field: &str) -> &'v str {
    node.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// What a kind is called in paths. Only this module's client uses these paths, so any name that tells kinds apart does.
pub(super) fn plural(kind: &str) -> String {
    kind.to_lowercase()
}

/// `/api` (the core group) or `/apis`: the kinds of the nodes, and those of every command.
pub(super) fn groups(is_core: bool, nodes: &[Value]) -> Value {
    type Versions = BTreeMap<String, BTreeSet<(String, String, bool)>>;
    let mut groups: BTreeMap<String, Versions> = BTreeMap::new();
    let mut add = |group: &str, version: &str, kind: &str, plural: String, namespaced: bool| {
        let versions = groups.entry(group.to_owned()).or_default();
        versions.entry(version.to_owned()).or_default().insert((kind.to_owned(), plural, namespaced));
    };
    let known = kinds::known();
    for resource in &known {
        let gvk = &resource.gvk;
        add(&gvk.group, &gvk.version, &gvk.kind, resource.plural.clone(), resource.namespaced);
    }
    for node in nodes {
        let (group, version, kind) = (text(node, "group"), text(node, "version"), text(node, "kind"));
        let is_known = |resource: &&plumb_kube::Resource| {
            let gvk = &resource.gvk;
            (&*gvk.group, &*gvk.version, &*gvk.kind) == (group, version, kind)
        };
        if !known.iter().any(|resource| is_known(&resource)) {
            add(group, version, kind, plural(kind), !text(node, "namespace").is_empty());
        }
    }
    let resource = |group: &str, version: &str, (kind, plural, namespaced): &(String, String, bool)| {
        json!({
            "resource": plural, "scope": if *namespaced { "Namespaced" } else { "Cluster" },
            "responseKind": {"group": group, "version": version, "kind": kind},
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        })
    };
    let items = groups.iter().filter(|(group, _)| group.is_empty() == is_core).map(|(group, versions)| {
        let versions = versions.iter().map(|(version, kinds)| {
            let resources: Vec<Value> = kinds.iter().map(|kind| resource(group, version, kind)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        });
        json!({"metadata": {"name": group}, "versions": versions.collect::<Vec<_>>()})
    });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items.collect::<Vec<_>>(),
    })
}

/// The kind of a plural.
pub(super) fn kind_of<'n>(group: &str, plural_name: &str, nodes: &'n [Value]) -> Option<&'n str> {
    let known = kinds::known();
    let of_command =
        known.iter().find(|resource| resource.gvk.group == group && resource.plural == plural_name);
    let has_kind = |node: &&Value| {
        let kind = text(node, "kind");
        text(node, "group") == group
            && (plural(kind) == plural_name || of_command.is_some_and(|resource| resource.gvk.kind == kind))
    };
    nodes.iter().find(has_kind).map(|node| text(node, "kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_nodes_are_found_again() {
        let nodes = [
            json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "a", "name": "x"}),
            json!({"group": "x.io", "version": "v2", "kind": "Gateway", "name": "y"}),
        ];
        let groups = groups(false, &nodes);
        let shown = groups["items"].as_array().unwrap();
        let of = |name: &str| shown.iter().find(|group| group["metadata"]["name"] == name).unwrap();
        assert_eq!(of("x.io")["versions"][0]["resources"][0]["scope"], "Cluster");
        assert_eq!(kind_of("x.io", "gateway", &nodes), Some("Gateway"));
        assert_eq!(kind_of("apps", "deployments", &nodes), Some("Deployment"));
        assert_eq!(kind_of("apps", "statefulsets", &nodes), None);
    }
}
