//! The definitions.

use serde_json::{Map, Value, json};

use crate::application::{ApplicationSpec, ApplicationStatus, Operation};
use crate::application_set::{ApplicationSetSpec, ApplicationSetStatus};
use crate::drift_report::{
    DriftFinding, DriftPause, DriftSummary, ExemptObject, PlainSecretObject, UnhealthyObject,
};
use crate::project::{AppProjectSpec, AppProjectStatus};
use crate::wire::{Wire, described, object_schema};

/// All definitions, in the order in which they are installed.
pub fn crds() -> Vec<Value> {
    vec![application(), app_project(), application_set(), drift_report()]
}

/// The parts of a definition besides its schema.
struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    subresources: Option<Value>,
    printer_columns: Vec<Value>,
}

fn application() -> Value {
    let definition = Definition {
        group: "argoproj.io",
        kind: "Application",
        plural: "applications",
        short_names: &["app", "apps"],
        // No status subresource: `kubectl patch` and Argo CD write spec, operation and status in one request.
        subresources: Some(json!({})),
        printer_columns: vec![
            column("Sync Status", "string", ".status.sync.status", 0),
            column("Health Status", "string", ".status.health.status", 0),
            column("Revision", "string", ".status.sync.revision", 10),
            column("Project", "string", ".spec.project", 10),
            // Columns that Argo CD does not have: `plumb app list` needs them so that it does not read whole objects. A
            // column of type string contains lists and maps as JSON.
            column("Cluster", "string", ".spec.destination.name", 10),
            column("Server", "string", ".spec.destination.server", 10),
            column("Destination", "string", ".spec.destination.namespace", 10),
            column("Repository", "string", ".spec.source.repoURL", 10),
            column("Path", "string", ".spec.source.path", 10),
            column("Chart", "string", ".spec.source.chart", 10),
            column("Target", "string", ".spec.source.targetRevision", 10),
            column("Sources", "string", ".spec.sources", 10),
            column("Automated", "string", ".spec.syncPolicy.automated", 10),
            column("Conditions", "string", ".status.conditions", 10),
            column("Pause", "string", r".metadata.annotations.plumb\.dev/pause", 10),
            column("Health Since", "string", ".status.health.lastTransitionTime", 10),
        ],
    };
    let fields = [
        ("spec", "The desired state.", ApplicationSpec::schema()),
        ("operation", "The operation that is requested or running.", Operation::schema()),
        ("status", "The observed state.", ApplicationStatus::schema()),
    ];
    definition.build(
        "Manifests from Git and the cluster and namespace that they are applied to.",
        fields,
        &["spec"],
    )
}

fn app_project() -> Value {
    let definition = Definition {
        group: "argoproj.io",
        kind: "AppProject",
        plural: "appprojects",
        short_names: &["appproj", "appprojs"],
        subresources: None,
        printer_columns: Vec::new(),
    };
    let fields = [
        ("spec", "The rules.", AppProjectSpec::schema()),
        ("status", "Token metadata.", AppProjectStatus::schema()),
    ];
    definition.build("Restrictions for a group of Applications.", fields, &["spec"])
}

fn application_set() -> Value {
    let definition = Definition {
        group: "argoproj.io",
        kind: "ApplicationSet",
        plural: "applicationsets",
        short_names: &["appset", "appsets"],
        subresources: Some(json!({"status": {}})),
        printer_columns: Vec::new(),
    };
    let fields = [
        ("spec", "The desired state.", ApplicationSetSpec::schema()),
        ("status", "The observed state.", ApplicationSetStatus::schema()),
    ];
    definition.build("A template for Applications and the generators of its parameters.", fields, &["spec"])
}

fn drift_report() -> Value {
    let definition = Definition {
        group: "plumb.dev",
        kind: "DriftReport",
        plural: "driftreports",
        short_names: &["drift"],
        subresources: None,
        printer_columns: vec![
            column("Counted", "integer", ".summary.counted", 0),
            column("Explained", "integer", ".summary.explained", 0),
            column("Worst", "string", ".summary.worst", 0),
            column("Since", "date", ".summary.since", 0),
            // For `plumb app list`: the time itself instead of an age, and the pauses.
            column("Oldest", "string", ".summary.since", 10),
            column("Pauses", "string", ".pauses", 10),
            column("Quiet", "integer", ".summary.quiet", 10),
        ],
    };
    let fields = [
        ("observedAt", "When these findings were first observed.", jiff::Timestamp::schema()),
        ("revision", "The revision that the cluster was compared with at that time.", String::schema()),
        ("summary", "Counts of the findings.", DriftSummary::schema()),
        ("findings", "Every explained difference.", Vec::<DriftFinding>::schema()),
        ("health", "Unhealthy objects, since when and why.", Vec::<UnhealthyObject>::schema()),
        ("pauses", "The app, or objects of it, that a user paused.", Vec::<DriftPause>::schema()),
        ("exempt", "Objects that Git exempted by an annotation.", Vec::<ExemptObject>::schema()),
        ("plainSecrets", "Secrets whose values are in Git.", Vec::<PlainSecretObject>::schema()),
    ];
    definition.build("Every difference of one Application, explained.", fields, &["summary", "findings"])
}

impl Definition {
    fn build<const N: usize>(
        &self,
        description: &str,
        fields: [(&str, &str, Value); N],
        required: &[&str],
    ) -> Value {
        let name = format!("{}.{}", self.plural, self.group);
        let part_of = if self.group == "plumb.dev" { "plumb" } else { "argocd" };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": part_of},
            },
            "spec": {
                "group": self.group,
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_lowercase(),
                    "shortNames": self.short_names,
                },
                "scope": "Namespaced",
                "versions": [self.version(description, fields, required)],
            },
        })
    }

    fn version<const N: usize>(
        &self,
        description: &str,
        fields: [(&str, &str, Value); N],
        required: &[&str],
    ) -> Value {
        let mut properties: Map<String, Value> = Map::new();
        properties.insert("apiVersion".to_owned(), String::schema());
        properties.insert("kind".to_owned(), String::schema());
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
        for (key, description, schema) in fields {
            properties.insert(key.to_owned(), described(schema, description));
        }
        let required: Vec<&str> = std::iter::once("metadata").chain(required.iter().copied()).collect();
        let schema = described(object_schema(properties, &required), description);
        let mut version = json!({
            "name": "v1alpha1",
            "served": true,
            "storage": true,
            "schema": {"openAPIV3Schema": schema},
        });
        if let Some(subresources) = &self.subresources {
            version["subresources"] = subresources.clone();
        }
        if !self.printer_columns.is_empty() {
            version["additionalPrinterColumns"] = Value::from(self.printer_columns.clone());
        }
        version
    }
}

fn column(name: &str, column_type: &str, json_path: &str, priority: i64) -> Value {
    let mut column = json!({"name": name, "type": column_type, "jsonPath": json_path});
    if priority != 0 {
        column["priority"] = Value::from(priority);
    }
    column
}
