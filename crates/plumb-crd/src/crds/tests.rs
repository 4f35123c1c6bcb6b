use serde_json::{Value, json};

use super::crds;
use crate::wire::Wire as _;

/// Field lists of Argo CD's definitions (3.6), one field a line: path, type, `required`, restrictions. Types
/// that occur many times are listed once and named in angle brackets elsewhere.
const ARGO_CD: [(&str, &str); 3] = [
    ("Application", include_str!("fields/application.txt")),
    ("AppProject", include_str!("fields/app_project.txt")),
    ("ApplicationSet", include_str!("fields/application_set.txt")),
];

fn schema(kind: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd["spec"]["names"]["kind"] == kind).expect("a definition");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn every_field_is_the_one_of_argo_cd() {
    for (kind, expected) in ARGO_CD {
        let mut fields = Vec::new();
        list_fields(&schema(kind), "", false, &mut fields);
        let expected: Vec<&str> = expected.lines().collect();
        let missing: Vec<_> =
            expected.iter().filter(|line| !fields.iter().any(|field| field == *line)).collect();
        let extra: Vec<_> = fields.iter().filter(|field| !expected.contains(&field.as_str())).collect();
        assert!(missing.is_empty() && extra.is_empty(), "{kind}\nmissing: {missing:#?}\nextra: {extra:#?}");
    }
}

/// The API server refuses a report with a field that its definition does not have.
#[test]
fn the_definition_has_every_field_of_a_report() {
    let report = crate::DriftReport::schema();
    let definition = schema("DriftReport");
    for field in report["properties"].as_object().expect("fields").keys() {
        let defined = &definition["properties"][field];
        assert_eq!(defined["type"], report["properties"][field]["type"], "{field}");
    }
}

/// Lists the fields of a schema in the form of the reference.
fn list_fields(schema: &Value, path: &str, required: bool, fields: &mut Vec<String>) {
    if !path.is_empty() {
        let required = if required { " required" } else { "" };
        fields.push(format!("{path} {}{required}{}", type_name(schema), restrictions(schema)));
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        if path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let child = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let required = schema["required"].as_array().is_some_and(|list| list.contains(&json!(key)));
        match folded(&child, key, property) {
            Some(name) => fields.push(format!("{child} {name}{}", if required { " required" } else { "" })),
            None => list_fields(property, &child, required, fields),
        }
    }
    if let Some(items) = schema.get("items") {
        list_fields(items, &format!("{path}[]"), false, fields);
    }
    if let Some(values) = schema.get("additionalProperties") {
        list_fields(values, &format!("{path}{{}}"), false, fields);
    }
}

/// The name of a type that is listed elsewhere.
fn folded(path: &str, key: &str, schema: &Value) -> Option<&'static str> {
    let has = |property: &str| schema["properties"].get(property).is_some();
    let in_status = path.starts_with("status");
    match key {
        "source" if path != "spec.source" && has("repoURL") => Some("<source>"),
        "sources" => Some("list of <source>"),
        "operation" if in_status => Some("<operation>"),
        "sourceHydrator" if in_status && has("drySource") => Some("<sourceHydrator>"),
        "helm" if path.contains("drySource") => Some("<helm>"),
        "kustomize" if path.contains("drySource") => Some("<kustomize>"),
        "directory" if path.contains("drySource") => Some("<directory>"),
        "plugin" if path.contains("drySource") => Some("<plugin>"),
        "spec" if path.ends_with("template.spec") => Some("<spec>"),
        "template" if path.contains("generators") => Some("<any>"),
        "generators" if path != "spec.generators" => Some("list of <any>"),
        _ => None,
    }
}

fn type_name(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "int-or-string".to_owned();
    }
    let name = match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str()) {
        (_, Some("date-time")) => "time",
        ("array", _) => "list",
        ("object", _) => "map",
        (other, _) => other,
    };
    let raw = if schema["x-kubernetes-preserve-unknown-fields"] == true { " raw" } else { "" };
    format!("{name}{raw}").trim().to_owned()
}

fn restrictions(schema: &Value) -> String {
    let show = |key: &&str| match &schema[*key] {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            Some(format!(" {key}={}", items.join("|")))
        }
        Value::String(text) => Some(format!(" {key}={text}")),
        other => Some(format!(" {key}={other}")),
    };
    ["maxLength", "minLength", "pattern", "enum"].iter().filter_map(show).collect()
}

/// The lists above leave out repetitions; this shows that they are repetitions.
#[test]
fn repeated_types_are_the_same_everywhere() {
    let application = without_descriptions(&schema("Application"));
    let source = &application["properties"]["spec"]["properties"]["source"];
    let mut n_sources = 0;
    visit(&application, &mut |key, schema| match key {
        "source" => {
            n_sources += 1;
            assert_eq!(schema, source);
        }
        "sources" => assert_eq!(&schema["items"], source),
        _ => {}
    });
    assert_eq!(n_sources, 6, "spec, comparedTo, two operations, syncResult and history");
    let in_status = &application["properties"]["status"]["properties"]["operationState"]["properties"];
    assert_eq!(in_status["operation"], application["properties"]["operation"]);
    let set = without_descriptions(&schema("ApplicationSet"));
    let template = &set["properties"]["spec"]["properties"]["template"]["properties"]["spec"];
    assert_eq!(template, &application["properties"]["spec"]);
}

#[test]
fn schemas_are_structural() {
    for crd in crds() {
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        visit(schema, &mut |key, schema| {
            let raw = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let int_or_string = schema["x-kubernetes-int-or-string"] == true;
            assert!(schema["type"].is_string() || raw || int_or_string, "{key} has no type");
            for forbidden in ["$ref", "default", "nullable", "oneOf", "definitions"] {
                assert!(schema.get(forbidden).is_none(), "{key} has {forbidden}");
            }
        });
    }
}

/// Calls `seen` for the schema of every property.
fn visit(schema: &Value, seen: &mut impl FnMut(&str, &Value)) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        seen(key, property);
        visit(property, seen);
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)) {
        visit(inner, seen);
    }
}

fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| !(key.as_str() == "description" && value.is_string()))
                .map(|(key, value)| (key.clone(), without_descriptions(value)))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

#[test]
fn names_scope_columns_and_subresources() {
    let facts: Vec<Value> = crds()
        .iter()
        .map(|crd| {
            let version = &crd["spec"]["versions"][0];
            let columns: Vec<_> = version["additionalPrinterColumns"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|column| {
                    let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
                    format!("{} {} {} {}", text("name"), text("type"), text("jsonPath"), column["priority"])
                })
                .collect();
            json!([
                crd["metadata"]["name"],
                crd["spec"]["names"]["shortNames"],
                crd["spec"]["scope"],
                version["subresources"],
                columns
            ])
        })
        .collect();
    let expected = json!([
        [
            "applications.argoproj.io",
            ["app", "apps"],
            "Namespaced",
            {},
            [
                "Sync Status string .status.sync.status null",
                "Health Status string .status.health.status null",
                "Revision string .status.sync.revision 10",
                "Project string .spec.project 10",
                "Cluster string .spec.destination.name 10",
                "Server string .spec.destination.server 10",
                "Destination string .spec.destination.namespace 10",
                "Repository string .spec.source.repoURL 10",
                "Path string .spec.source.path 10",
                "Chart string .spec.source.chart 10",
                "Target string .spec.source.targetRevision 10",
                "Sources string .spec.sources 10",
                "Automated string .spec.syncPolicy.automated 10",
                "Conditions string .status.conditions 10",
                r"Pause string .metadata.annotations.plumb\.dev/pause 10",
                "Health Since string .status.health.lastTransitionTime 10",
            ]
        ],
        ["appprojects.argoproj.io", ["appproj", "appprojs"], "Namespaced", null, []],
        ["applicationsets.argoproj.io", ["appset", "appsets"], "Namespaced", {"status": {}}, []],
        [
            "driftreports.plumb.dev",
            ["drift"],
            "Namespaced",
            null,
            [
                "Counted integer .summary.counted null",
                "Explained integer .summary.explained null",
                "Worst string .summary.worst null",
                "Since date .summary.since null",
                "Oldest string .summary.since 10",
                "Pauses string .pauses 10",
                "Quiet integer .summary.quiet 10",
            ]
        ],
    ]);
    assert_eq!(Value::from(facts), expected);
}
