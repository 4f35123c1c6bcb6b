//! Which webhooks and policies may change an object when it is written.

use std::sync::Arc;

use plumb_core::drift::Mutator;
use plumb_core::object::{GroupKind, Manifest};
use plumb_kube::{Catalog, LiveStore};
use serde_json::Value;

const GROUP: &str = "admissionregistration.k8s.io";

/// Every mutating admission configuration of the cluster that is known whole.
pub(crate) fn mutators(store: &LiveStore) -> Vec<Arc<Manifest>> {
    ["MutatingWebhookConfiguration", "MutatingAdmissionPolicy"]
        .into_iter()
        .flat_map(|kind| store.of_kind(&GroupKind::new(GROUP, kind)))
        // The witness writes nothing but its own note.
        .filter(|node| !plumb_crd::witness::is_witness(&node.key.name))
        .filter_map(|node| store.get_kept(&node.key).map(Arc::new))
        .collect()
}

/// Those whose rules match objects of this kind.
pub(crate) fn matching(mutators: &[Arc<Manifest>], object: &Manifest, catalog: &Catalog) -> Vec<Mutator> {
    if mutators.is_empty() {
        return Vec::new();
    }
    let gvk = object.gvk();
    let Some(resource) = catalog.resource(&gvk) else { return Vec::new() };
    mutators
        .iter()
        .filter(|mutator| {
            rules(mutator).any(|rule| matches(rule, &gvk.group, &gvk.version, &resource.plural))
        })
        .filter_map(|mutator| {
            Some(Mutator { kind: mutator.kind().to_owned(), name: mutator.name()?.to_owned() })
        })
        .collect()
}

/// The rules of all webhooks of a configuration, or those of a policy.
fn rules(mutator: &Manifest) -> impl Iterator<Item = &Value> {
    let value = mutator.value();
    let of_webhooks = value
        .get("webhooks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|webhook| webhook.get("rules")?.as_array())
        .flatten();
    let of_policy =
        value.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array).into_iter().flatten();
    of_webhooks.chain(of_policy)
}

fn matches(rule: &Value, group: &str, version: &str, plural: &str) -> bool {
    let has = |field: &str, wanted: &str| {
        let entries =
            rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        entries.into_iter().any(|entry| entry == "*" || entry == "*/*" || entry == wanted)
    };
    let writes =
        rule.get("operations").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let writes = writes.into_iter().any(|operation| matches!(operation, "*" | "CREATE" | "UPDATE"));
    writes && has("apiGroups", group) && has("apiVersions", version) && has("resources", plural)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_match_as_the_server_matches_them() {
        let rule = json!({"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"]});
        assert!(matches(&rule, "apps", "v1", "deployments"));
        assert!(!matches(&rule, "apps", "v1", "statefulsets"));
        assert!(!matches(&rule, "", "v1", "deployments"));
        let deletes =
            json!({"operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        assert!(!matches(&deletes, "apps", "v1", "deployments"));
    }
}
