//! Generates objects of a kind from its schema.

use plumb_core::object::Segment;
use serde_json::{Map, Value, json};

use crate::kind::Kind;
use crate::random::Random;
use crate::values;

/// Deepest nesting. The probe of a container in the job template of a `CronJob` is at 10.
const DEEPEST: usize = 14;
/// Approximate number of fields of an object.
const MOST_FIELDS: usize = 500;

/// Fields that Git cannot set, or that the skeleton sets.
const LEFT_OUT: [&str; 12] = [
    "metadata",
    "status",
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
    "apiVersion",
    "kind",
    // Set by other requests only.
    "ephemeralContainers",
    // These need other objects, or disable the controllers of the object.
    "priorityClassName",
    "runtimeClassName",
    "volumeAttributesClassName",
    "schedulingGates",
];

/// Fields of one type or kind that would disrupt the cluster, or that only a system component sets.
const LEFT_OUT_OF: [(&str, &str); 12] = [
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec", "service"),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec", "caBundle"),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec", "insecureSkipTLSVerify"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec", "conversion"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion", "schema"),
    ("io.k8s.api.core.v1.PodSpec", "nodeName"),
    ("io.k8s.api.core.v1.PodSpec", "resourceClaims"),
    ("io.k8s.api.core.v1.PodSpec", "overhead"),
    ("io.k8s.api.core.v1.PersistentVolumeClaimSpec", "volumeName"),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef"),
    ("io.k8s.api.core.v1.NamespaceSpec", "finalizers"),
    ("io.k8s.api.core.v1.NodeSpec", "configSource"),
];

/// Generates objects of one kind.
pub struct Generator<'a> {
    kind: &'a Kind,
    random: Random,
    /// Percentage of optional fields that are set.
    richness: usize,
    fields: usize,
}

/// A schema after following references.
#[derive(Clone, Copy, Debug)]
pub struct Resolved<'a> {
    /// The schema itself.
    pub schema: &'a Value,
    /// The name by which it was referred to.
    pub type_name: Option<&'a str>,
}

/// Follows references, alone or as the single entry of `allOf`.
pub fn resolve<'a>(kind: &'a Kind, schema: &'a Value) -> Resolved<'a> {
    let mut resolved = Resolved { schema, type_name: None };
    loop {
        let wrapped = resolved.schema["allOf"].as_array().and_then(|all| all.first());
        let reference = wrapped.unwrap_or(resolved.schema)["$ref"].as_str();
        let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) else {
            return resolved;
        };
        resolved = Resolved { schema: &kind.schemas[name], type_name: Some(name) };
    }
}

/// The schema of a path in an object.
pub fn schema_at<'a>(kind: &'a Kind, path: &[Segment]) -> Option<Resolved<'a>> {
    let root = Resolved { schema: &kind.schemas[&kind.schema], type_name: Some(&kind.schema) };
    path.iter().try_fold(root, |at, segment| Some(resolve(kind, step(at, segment)?)))
}

/// The schema of one step of a path, without following references.
fn step<'a>(at: Resolved<'a>, segment: &Segment) -> Option<&'a Value> {
    match segment {
        Segment::Field(name) => match at.schema["properties"].get(name.as_str()) {
            Some(property) => Some(property),
            None => at.schema.get("additionalProperties").filter(|values| values.is_object()),
        },
        Segment::Index(_) => at.schema.get("items"),
    }
}

/// True if an apply merges this field and all its parents granularly. Then other writers own what they add to it.
pub fn is_merged(kind: &Kind, path: &[Segment]) -> bool {
    (1..=path.len()).all(|length| {
        let Some((last, before)) = path.get(..length).and_then(<[Segment]>::split_last) else { return false };
        let Some(place) = schema_at(kind, before).and_then(|at| step(at, last)) else { return false };
        let behind = resolve(kind, place).schema;
        let says = |key: &str, value: &str| place[key] == value || behind[key] == value;
        let is_list = says("type", "array");
        let is_merged_list = says("x-kubernetes-list-type", "map") || says("x-kubernetes-list-type", "set");
        !says("x-kubernetes-map-type", "atomic") && (!is_list || is_merged_list)
    })
}

/// True if the schema allows any value.
pub fn is_open(kind: &Kind, path: &[Segment]) -> bool {
    schema_at(kind, path).is_some_and(|at| {
        ["type", "properties", "oneOf", "anyOf"].iter().all(|key| at.schema.get(*key).is_none())
    })
}

impl<'a> Generator<'a> {
    /// A generator of objects of this kind. The same seed generates the same objects.
    pub fn new(kind: &'a Kind, seed: u64, richness: usize) -> Self {
        Self { kind, random: Random::of(seed, &kind.name()), richness, fields: 0 }
    }

    /// The skeleton with more fields.
    pub fn enrich(&mut self, skeleton: &Value) -> Value {
        let root =
            Resolved { schema: &self.kind.schemas[&self.kind.schema], type_name: Some(&self.kind.schema) };
        let mut object = skeleton.clone();
        self.fill(root, &mut object, 0);
        if self.richness > 0 {
            object["metadata"]["labels"] = json!({"example.com/team": "blue", "tier": "t1"});
            object["metadata"]["annotations"] = json!({"example.com/note": "a note", "plain": "p1"});
        }
        object
    }

    /// A value for a field that the server requires; also used to change a field.
    pub fn value_at(&mut self, path: &[Segment], salt: usize) -> Option<Value> {
        let place = schema_at(self.kind, path)?;
        let name = path.iter().rev().find_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        });
        self.value(place, name.unwrap_or_default(), path.len(), salt)
    }

    fn fill(&mut self, place: Resolved<'a>, value: &mut Value, depth: usize) {
        match value {
            Value::Object(map) => {
                let names: Vec<String> = map.keys().cloned().collect();
                for name in names {
                    let Some(property) = place.schema["properties"].get(&name) else { continue };
                    let property = resolve(self.kind, property);
                    if let Some(value) = map.get_mut(&name)
                        && !(depth == 0 && name == "metadata")
                    {
                        self.fill(property, value, depth + 1);
                    }
                }
                self.add_fields(place, map, depth, 1);
            }
            Value::Array(items) => {
                let Some(schema) = place.schema.get("items") else { return };
                let schema = resolve(self.kind, schema);
                for item in items {
                    self.fill(schema, item, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add_fields(&mut self, place: Resolved<'a>, map: &mut Map<String, Value>, depth: usize, salt: usize) {
        let Some(properties) = place.schema["properties"].as_object() else { return };
        let required: Vec<&str> =
            place.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in properties {
            if map.contains_key(name) || is_left_out(place, name, depth) {
                continue;
            }
            let wanted = required.contains(&name.as_str())
                || (depth < DEEPEST && self.fields < MOST_FIELDS && self.random.chance(self.richness));
            if !wanted {
                continue;
            }
            self.fields += 1;
            let property = resolve(self.kind, property);
            if let Some(value) = self.value(property, name, depth + 1, salt) {
                map.insert(name.clone(), value);
            }
        }
    }

    fn value(&mut self, place: Resolved<'a>, name: &str, depth: usize, salt: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        let schema = place.schema;
        if let Some(well_known) = place.type_name.and_then(|name| name.rsplit('.').next()) {
            match well_known {
                "Quantity" => return Some(values::quantity(salt + self.random.below(8))),
                "IntOrString" => return Some(values::int_or_string(name, salt)),
                "MicroTime" => return Some(json!(format!("2026-01-02T03:04:{:02}.000000Z", salt % 60))),
                "ObjectMeta" => {
                    return Some(
                        json!({"labels": {"example.com/l": format!("l{salt}")}, "annotations": {"example.com/a": format!("a{salt}")}}),
                    );
                }
                "RawExtension" | "JSON" => return Some(values::anything(&mut self.random, salt)),
                "FieldsV1" | "JSONSchemaProps" => return None,
                _ => {}
            }
        }
        if let Some(choices) = schema["enum"].as_array() {
            return choices
                .get((salt + self.random.below(choices.len().max(1))) % choices.len().max(1))
                .cloned();
        }
        if schema["x-kubernetes-int-or-string"] == true || schema["format"] == "int-or-string" {
            let is_quantity = schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("KMGTPE"));
            return Some(if is_quantity {
                values::quantity(salt)
            } else {
                values::int_or_string(name, salt)
            });
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            return Some(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("e{salt}")}, "data": {"a": "b"}}),
            );
        }
        match schema["type"].as_str() {
            Some("string") => Some(self.text(schema, name, salt)),
            Some("integer") => Some(json!(values::number(name, schema, salt))),
            Some("number") => Some([json!(0.5), json!(2), json!(99.9)][salt % 3].clone()),
            Some("boolean") => Some(json!(self.random.chance(60))),
            Some("array") => self.list(place, name, depth, salt),
            Some("object") | None => self.map(place, depth, salt),
            Some(_) => None,
        }
    }

    fn text(&mut self, schema: &Value, name: &str, salt: usize) -> Value {
        match schema["format"].as_str() {
            Some("date-time") => json!(format!("2026-01-02T03:04:{:02}Z", salt % 60)),
            Some("byte") => json!(["aGVsbG8=", "d29ybGQ=", "cGx1bWI="][salt % 3]),
            _ if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("KMGTPE")) => {
                json!(["1", "500m", "2Gi"][salt % 3])
            }
            _ => {
                let spread = self.random.below(3) * 7;
                json!(values::text(name, salt + spread))
            }
        }
    }

    fn list(&mut self, place: Resolved<'a>, name: &str, depth: usize, salt: usize) -> Option<Value> {
        let items = resolve(self.kind, place.schema.get("items")?);
        let length = 1 + self.random.below(2);
        let keys = place.schema["x-kubernetes-list-map-keys"].as_array();
        let mut list: Vec<Value> = Vec::new();
        for at in 0..length {
            let mut item = self.value(items, name, depth + 1, salt * 2 + at)?;
            // Two items with the same key are refused.
            for key in keys.into_iter().flatten().filter_map(Value::as_str) {
                if let Some(Value::String(text)) = item.get_mut(key)
                    && !text.starts_with('/')
                    && resolve(self.kind, &items.schema["properties"][key]).schema["enum"].is_null()
                    && key != "ip"
                    && key != "protocol"
                {
                    *text = values::text(key, salt * 2 + at);
                }
            }
            if !list.contains(&item) {
                list.push(item);
            }
        }
        Some(Value::Array(list))
    }

    fn map(&mut self, place: Resolved<'a>, depth: usize, salt: usize) -> Option<Value> {
        let mut map = Map::new();
        if let Some(values) = place.schema.get("additionalProperties").filter(|values| values.is_object()) {
            let values = resolve(self.kind, values);
            for at in 0..2 {
                let name = if values.type_name.is_some_and(|name| name.ends_with("Quantity")) {
                    ["cpu", "memory"][at].to_owned()
                } else {
                    format!("k{}", salt + at)
                };
                map.insert(name.clone(), self.value(values, &name, depth + 1, salt + at)?);
            }
            return Some(Value::Object(map));
        }
        if place.schema["properties"].is_null() {
            return Some(values::anything(&mut self.random, salt));
        }
        self.add_fields(place, &mut map, depth, salt);
        Some(Value::Object(map))
    }
}

fn is_left_out(place: Resolved<'_>, name: &str, depth: usize) -> bool {
    // The metadata of a template is allowed, and so is `kind` inside a reference.
    let is_root_only = matches!(name, "metadata" | "apiVersion" | "kind" | "status");
    let is_template = place.type_name.is_some_and(|name| name.ends_with("TemplateSpec"));
    (LEFT_OUT.contains(&name) && (!is_root_only || depth == 0) && !(name == "metadata" && is_template))
        || LEFT_OUT_OF.iter().any(|(of, field)| place.type_name == Some(of) && *field == name)
        || (name == "status" && place.type_name.is_some_and(|name| name.ends_with("PersistentVolumeClaim")))
}
