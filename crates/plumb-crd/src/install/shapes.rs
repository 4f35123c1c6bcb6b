//! All values of the chart, and their shapes: what is read, and the schema with which Helm refuses other values.

use serde_json::{Map, Value, json};

/// What a value may be.
enum Shape {
    Text,
    Flag,
    Number,
    Texts,
    /// A list of maps.
    List,
    /// A map with any keys.
    Map,
    OneOf(&'static [&'static str]),
    /// A map with these keys only.
    Parts(&'static [(&'static str, Shape)]),
}

use Shape::{Flag, List, Map as AnyMap, Number, OneOf, Parts, Text, Texts};

const VALUES: &[(&str, Shape)] = &[
    ("affinity", AnyMap),
    (
        "configs",
        Parts(&[
            ("cm", AnyMap),
            ("params", AnyMap),
            ("rbac", AnyMap),
            ("ssh", AnyMap),
            ("tls", AnyMap),
            ("gpg", AnyMap),
            ("repositories", AnyMap),
            ("credentialTemplates", AnyMap),
            ("clusterCredentials", AnyMap),
            ("secret", AnyMap),
            // Of argo-helm, and without effect: plugins are in `plumb-plugins`, and the page has no styles of others.
            ("cmp", AnyMap),
            ("styles", Text),
            ("repositoriesAnnotations", AnyMap),
            ("credentialTemplatesAnnotations", AnyMap),
        ]),
    ),
    ("crds", Parts(&[("install", Flag), ("argocd", Flag)])),
    ("extraArgs", Texts),
    ("extraEnv", List),
    ("gateway", Parts(&[("enabled", Flag), ("host", Text), ("name", Text), ("namespace", Text)])),
    (
        "image",
        Parts(&[
            ("repository", Text),
            ("tag", Text),
            ("digest", Text),
            ("pullPolicy", OneOf(&["Always", "IfNotPresent", "Never"])),
        ]),
    ),
    ("imagePullSecrets", List),
    (
        "ingress",
        Parts(&[
            ("enabled", Flag),
            ("host", Text),
            ("className", Text),
            ("annotations", AnyMap),
            ("tls", List),
        ]),
    ),
    ("networkPolicy", Parts(&[("enabled", Flag), ("webFrom", Texts), ("metricsFrom", Texts)])),
    ("nodeSelector", AnyMap),
    ("podAnnotations", AnyMap),
    ("podLabels", AnyMap),
    ("priorityClassName", Text),
    ("prometheusRule", Parts(&[("enabled", Flag), ("labels", AnyMap)])),
    ("rbac", Parts(&[("profile", OneOf(&["standard", "strict"])), ("impersonateIn", Texts)])),
    ("replicas", Number),
    ("resources", AnyMap),
    ("serviceAccount", Parts(&[("annotations", AnyMap)])),
    ("serviceMonitor", Parts(&[("enabled", Flag), ("interval", Text), ("labels", AnyMap)])),
    ("tolerations", List),
];

/// The first key that the chart does not have, with its path.
pub(super) fn unknown_key(values: &Value) -> Option<String> {
    let unknown = |shapes: &'static [(&str, Shape)], map: &Map<String, Value>| {
        map.keys().find(|key| !shapes.iter().any(|(name, _)| name == key)).cloned()
    };
    let map = values.as_object()?;
    let in_part = |(key, shape): &'static (&str, Shape)| match shape {
        Parts(shapes) => Some(format!("{key}.{}", unknown(shapes, map.get(*key)?.as_object()?)?)),
        _ => None,
    };
    unknown(VALUES, map).or_else(|| VALUES.iter().find_map(in_part))
}

/// `values.schema.json` of the chart.
pub fn values_schema() -> Value {
    let mut schema = parts(VALUES);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    // Helm gives it to every chart that is part of another.
    schema["properties"]["global"] = json!({"type": "object"});
    schema
}

fn parts(shapes: &[(&str, Shape)]) -> Value {
    let properties: Map<String, Value> =
        shapes.iter().map(|(key, shape)| ((*key).to_owned(), of_shape(shape))).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Text => json!({"type": "string"}),
        Flag => json!({"type": "boolean"}),
        Number => json!({"type": "integer", "minimum": 0}),
        Texts => json!({"type": "array", "items": {"type": "string"}}),
        List => json!({"type": "array", "items": {"type": "object"}}),
        AnyMap => json!({"type": "object"}),
        OneOf(words) => json!({"enum": words}),
        Parts(shapes) => parts(shapes),
    }
}
