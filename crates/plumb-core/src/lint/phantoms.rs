//! Class B: values that mean the same as leaving the field out.

use serde_json::Value;

use super::app::Item;
use super::built_in::is_built_in;
use super::{LintApp, LintFinding, LintRule, Severity};
use crate::drift::{is_dropped_by_argo_cd, is_same_as_absent};
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;

pub(super) fn check(app: &LintApp<'_>, schemas: &SchemaSet) -> Vec<LintFinding> {
    app.items().filter_map(|item| of_item(app, &item, schemas)).collect()
}

fn of_item(app: &LintApp<'_>, item: &Item<'_>, schemas: &SchemaSet) -> Option<LintFinding> {
    let kind = Kind::of(item.manifest, schemas);
    let mut found = Vec::new();
    for (name, value) in item.manifest.value().as_object()? {
        let is_own = !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind");
        if is_own && !(value.is_object() && is_free(name)) {
            walk(value, &FieldPath::root().field(name.as_str()), kind, &mut found);
        }
    }
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> = found.iter().map(|(path, value)| format!("{path}: {value}")).collect();
    let message = format!("Git sets what is the same as leaving the field out: {}", shown.join(", "));
    // Argo CD reads built-in kinds through their types, which drop such values on both sides.
    let (fix, severity) = match kind {
        Kind::Kubernetes => ("remove the lines: the live object does not have them", Severity::Hint),
        Kind::ArgoCd | Kind::Other => (
            "remove the lines: the live object does not have them, and Argo CD shows it as OutOfSync",
            Severity::Warning,
        ),
    };
    let fields = found.into_iter().map(|(path, _)| path).collect();
    Some(
        LintFinding::new(LintRule::PhantomDefault, app.name, message, fix)
            .of(item.key(), item.origin)
            .at(fields)
            .with_severity(severity),
    )
}

/// Whose types read the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kubernetes,
    ArgoCd,
    /// Its operator decides what an absent field means.
    Other,
}

impl Kind {
    fn of(manifest: &Manifest, schemas: &SchemaSet) -> Self {
        match (manifest.group(), manifest.kind()) {
            ("argoproj.io", "Application" | "AppProject" | "ApplicationSet") => Self::ArgoCd,
            _ if is_built_in(manifest, schemas) => Self::Kubernetes,
            _ => Self::Other,
        }
    }
}

fn walk(value: &Value, path: &FieldPath, kind: Kind, found: &mut Vec<(FieldPath, Value)>) {
    if is_phantom(value, path, kind) {
        found.push((path.clone(), value.clone()));
        return;
    }
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(name, value)| !(value.is_object() && is_free(name)));
            fields.for_each(|(name, value)| walk(value, &path.field(name.as_str()), kind, found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| walk(item, &path.index(index), kind, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Maps whose keys users choose: an empty text in them is a value.
fn is_free(name: &str) -> bool {
    matches!(
        name,
        "annotations"
            | "binaryData"
            | "commonAnnotations"
            | "commonLabels"
            | "data"
            | "elements"
            | "labels"
            | "limits"
            | "matchLabels"
            | "nodeSelector"
            | "parameters"
            | "requests"
            | "selector"
            | "stringData"
            | "values"
            | "valuesObject"
    )
}

fn is_phantom(value: &Value, path: &FieldPath, kind: Kind) -> bool {
    if value.is_null() {
        // Generators write `creationTimestamp: null` everywhere; it is not worth reporting.
        return !path.to_string().ends_with("/creationTimestamp");
    }
    match kind {
        Kind::Kubernetes => is_same_as_absent(path, value),
        // An empty map can switch something on: `automated: {}`.
        Kind::ArgoCd => !value.is_object() && is_dropped_by_argo_cd(path, value),
        Kind::Other => false,
    }
}
