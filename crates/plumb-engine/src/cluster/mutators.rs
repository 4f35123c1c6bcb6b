//! Which webhooks and policies may change an object when it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::drift::Mutator;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_kube::{Catalog, LiveStore};
use serde_json::Value;

use super::label_selector::{Labels, selects};

const GROUP: &str = "admissionregistration.k8s.io";
const BINDING: &str = "MutatingAdmissionPolicyBinding";
/// The label that the API server sets on every namespace, to its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// All mutating admission configurations that the live store keeps whole, with the bindings of policies.
pub(crate) fn mutators(store: &LiveStore) -> Vec<Arc<Manifest>> {
    let kept = |kind: &str| -> (Vec<Arc<Manifest>>, bool) {
        let nodes = store.of_kind(&GroupKind::new(GROUP, kind));
        // The witness only writes its own annotation.
        let nodes = nodes.iter().filter(|node| !plumb_crd::witness::is_witness(&node.key.name));
        let read: Vec<_> = nodes.clone().map(|node| store.get_kept(&node.key).map(Arc::new)).collect();
        let all = read.iter().all(Option::is_some);
        (read.into_iter().flatten().collect(), all)
    };
    let (mut mutators, _) = kept("MutatingWebhookConfiguration");
    let (mut policies, _) = kept("MutatingAdmissionPolicy");
    let (bindings, all) = kept(BINDING);
    // A policy without a binding has no effect.
    if all && store.is_listed(&GroupKind::new(GROUP, BINDING)) {
        policies.retain(|policy| bindings.iter().any(|binding| is_binding_of(binding, policy)));
    }
    mutators.append(&mut policies);
    mutators.extend(bindings);
    mutators
}

fn is_binding_of(binding: &Manifest, policy: &Manifest) -> bool {
    let policy_name = binding.value().pointer("/spec/policyName").and_then(Value::as_str);
    binding.kind() == BINDING && policy_name.is_some() && policy_name == policy.name()
}

/// The webhooks and policies that may change this object. CEL conditions are not evaluated: any of them may
/// match.
pub(crate) fn matching(
    mutators: &[Arc<Manifest>],
    (desired, live): (&Manifest, Option<&Manifest>),
    catalog: &Catalog,
    store: &LiveStore,
) -> Vec<Mutator> {
    let gvk = desired.gvk();
    // The API server does not run admission for admission configurations.
    if mutators.is_empty() || gvk.group == GROUP {
        return Vec::new();
    }
    let Some(resource) = catalog.resource(&gvk) else { return Vec::new() };
    let served = catalog.kind(&gvk.group_kind());
    let versions = served.into_iter().flat_map(|served| &served.versions);
    let namespace = desired.namespace().filter(|_| resource.namespaced);
    let namespace_object =
        namespace.and_then(|name| store.get_kept(&ObjectKey::new("", "Namespace", None, name)));
    let target = Target {
        group: &gvk.group,
        version: &gvk.version,
        versions: versions.map(|version| version.version.as_str()).collect(),
        plural: &resource.plural,
        namespaced: resource.namespaced,
        name: desired.name().unwrap_or_default(),
        labels: written_labels(desired, live),
        namespace: match (namespace, &namespace_object) {
            (_, Some(namespace)) => Some(Labels { known: namespace.labels(), complete: true }),
            (Some(name), None) => {
                Some(Labels { known: BTreeMap::from([(NAME_LABEL, name)]), complete: false })
            }
            (None, None) if gvk.group.is_empty() && gvk.kind == "Namespace" => {
                Some(written_labels(desired, live))
            }
            (None, None) => None,
        },
    };
    mutators
        .iter()
        .filter(|mutator| mutator.kind() != BINDING && may_change(mutator, mutators, &target))
        .filter_map(|mutator| {
            Some(Mutator { kind: mutator.kind().to_owned(), name: mutator.name()?.to_owned() })
        })
        .collect()
}

/// The labels of the object after an apply.
fn written_labels<'a>(desired: &'a Manifest, live: Option<&'a Manifest>) -> Labels<'a> {
    let mut known = live.map(Manifest::labels).unwrap_or_default();
    known.extend(desired.labels());
    Labels { known, complete: true }
}

/// The object that is written, as admission rules match it.
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    /// All versions in which the API server serves the kind.
    versions: Vec<&'a str>,
    plural: &'a str,
    namespaced: bool,
    name: &'a str,
    labels: Labels<'a>,
    /// The labels of its namespace, or its own if it is a Namespace. `None` for other cluster-scoped objects.
    namespace: Option<Labels<'a>>,
}

fn may_change(mutator: &Manifest, all: &[Arc<Manifest>], target: &Target<'_>) -> bool {
    let value = mutator.value();
    if let Some(webhooks) = value.get("webhooks").and_then(Value::as_array) {
        return webhooks.iter().any(|webhook| applies_to(webhook, Some(list(webhook, "rules")), target));
    }
    let Some(constraints) = value.pointer("/spec/matchConstraints") else { return false };
    let mut bindings = all.iter().filter(|binding| is_binding_of(binding, mutator)).peekable();
    let is_bound = bindings.peek().is_none()
        || bindings.any(|binding| {
            let narrower = binding.value().pointer("/spec/matchResources");
            narrower.is_none_or(|narrower| {
                let rules = list(narrower, "resourceRules");
                applies_to(narrower, Some(rules).filter(|rules| !rules.is_empty()), target)
            })
        });
    is_bound && applies_to(constraints, Some(list(constraints, "resourceRules")), target)
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// True if the selectors and rules of a webhook, a policy or a binding match the creation or update of this
/// object. A binding may have no rules of its own.
fn applies_to(constraints: &Value, rules: Option<&[Value]>, target: &Target<'_>) -> bool {
    let is_selected =
        target.namespace.as_ref().is_none_or(|labels| selects(constraints.get("namespaceSelector"), labels))
            && selects(constraints.get("objectSelector"), &target.labels);
    let is_exact = constraints.get("matchPolicy").and_then(Value::as_str) == Some("Exact");
    let any =
        |rules: &[Value], operation| rules.iter().any(|rule| matches(rule, operation, is_exact, target));
    let excluded = list(constraints, "excludeResourceRules");
    is_selected
        && ["CREATE", "UPDATE"]
            .into_iter()
            .any(|operation| rules.is_none_or(|rules| any(rules, operation)) && !any(excluded, operation))
}

fn matches(rule: &Value, operation: &str, is_exact: bool, target: &Target<'_>) -> bool {
    let texts = |field: &str| -> Vec<&str> {
        let entries = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(Value::as_str).collect()
    };
    let has = |field: &str, wanted: &str| texts(field).iter().any(|entry| *entry == "*" || *entry == wanted);
    // The API server converts the object to the version that a rule names, unless `matchPolicy` is `Exact`.
    let has_version = has("apiVersions", target.version)
        || (!is_exact && target.versions.iter().any(|version| has("apiVersions", version)));
    let names = texts("resourceNames");
    let scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => target.namespaced,
        Some("Cluster") => !target.namespaced,
        _ => true,
    };
    has("operations", operation)
        && has("apiGroups", target.group)
        && has_version
        && (has("resources", target.plural) || texts("resources").contains(&"*/*"))
        && (names.is_empty() || names.contains(&target.name))
        && scope
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A Deployment `web` with label `app: web`, in a namespace of which only the name is known.
    fn deployment() -> Target<'static> {
        Target {
            group: "apps",
            version: "v1",
            versions: vec!["v1", "v1beta1"],
            plural: "deployments",
            namespaced: true,
            name: "web",
            labels: Labels { known: BTreeMap::from([("app", "web")]), complete: true },
            namespace: Some(Labels { known: BTreeMap::from([(NAME_LABEL, "shop")]), complete: false }),
        }
    }

    fn rule(operation: &str, version: &str, resource: &str) -> Value {
        json!({"operations": [operation], "apiGroups": ["apps"], "apiVersions": [version], "resources": [resource]})
    }

    #[test]
    fn rules_match_as_in_the_api_server() {
        let with = |field: &str, value: Value| {
            let mut rule = rule("UPDATE", "v1", "deployments");
            rule[field] = value;
            rule
        };
        for (rule, expected) in [
            (rule("UPDATE", "v1", "deployments"), true),
            (rule("*", "*", "*"), true),
            (rule("*", "*", "*/*"), true),
            (rule("CREATE", "v1", "deployments"), false),
            (rule("UPDATE", "v1", "statefulsets"), false),
            (rule("UPDATE", "v1", "deployments/scale"), false),
            (rule("UPDATE", "v1beta1", "deployments"), true),
            (rule("UPDATE", "v2", "deployments"), false),
            (with("apiGroups", json!([""])), false),
            (with("resourceNames", json!(["web"])), true),
            (with("resourceNames", json!(["db"])), false),
            (with("scope", json!("Cluster")), false),
            (with("scope", json!("Namespaced")), true),
        ] {
            assert_eq!(matches(&rule, "UPDATE", false, &deployment()), expected, "{rule}");
        }
        assert!(!matches(&rule("UPDATE", "v1beta1", "deployments"), "UPDATE", true, &deployment()));
    }

    #[test]
    fn selectors_and_exclusions_leave_objects_out() {
        let labels = |labels: Value| json!({"matchLabels": labels});
        let name = |name: &str| labels(json!({NAME_LABEL: name}));
        let all = || json!([rule("*", "*", "*")]);
        for (constraints, expected) in [
            (json!({"resourceRules": all()}), true),
            (json!({"resourceRules": []}), false),
            (json!({"resourceRules": all(), "namespaceSelector": name("shop")}), true),
            (json!({"resourceRules": all(), "namespaceSelector": name("other")}), false),
            (json!({"resourceRules": all(), "namespaceSelector": labels(json!({"team": "a"}))}), true),
            (json!({"resourceRules": all(), "objectSelector": labels(json!({"app": "web"}))}), true),
            (json!({"resourceRules": all(), "objectSelector": labels(json!({"app": "db"}))}), false),
            (json!({"resourceRules": all(), "excludeResourceRules": [rule("*", "*", "deployments")]}), false),
            (
                json!({"resourceRules": all(), "excludeResourceRules": [rule("CREATE", "*", "deployments")]}),
                true,
            ),
            (json!({"resourceRules": [rule("DELETE", "*", "*")]}), false),
            (json!({"matchPolicy": "Exact", "resourceRules": [rule("*", "v1beta1", "*")]}), false),
        ] {
            let rules = list(&constraints, "resourceRules");
            assert_eq!(applies_to(&constraints, Some(rules), &deployment()), expected, "{constraints}");
        }
        let node = Target { namespace: None, namespaced: false, ..deployment() };
        assert!(applies_to(&json!({"namespaceSelector": name("other")}), None, &node));
    }

    #[test]
    fn a_policy_applies_where_a_binding_matches() {
        let object = |kind: &str, name: &str, spec: Value| {
            Manifest::new(json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind,
                "metadata": {"name": name}, "spec": spec}))
            .unwrap()
        };
        let policy = object(
            "MutatingAdmissionPolicy",
            "mirror",
            json!({"matchConstraints": {"resourceRules": [rule("*", "*", "*")]}}),
        );
        let binding = |namespace: &str| {
            let selector = json!({"matchLabels": {NAME_LABEL: namespace}});
            let spec = json!({"policyName": "mirror", "matchResources": {"namespaceSelector": selector}});
            Arc::new(object(BINDING, namespace, spec))
        };
        let other = || Arc::new(object(BINDING, "other", json!({"policyName": "another"})));
        assert!(may_change(&policy, &[], &deployment()));
        assert!(may_change(&policy, &[other()], &deployment()));
        assert!(may_change(&policy, &[binding("away"), binding("shop")], &deployment()));
        assert!(!may_change(&policy, &[binding("away"), other()], &deployment()));
    }
}
