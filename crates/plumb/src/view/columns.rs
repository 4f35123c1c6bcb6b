//! Applications and reports with only the fields that a list shows.
//!
//! Most of an Application is status: the API server takes a second to serialize a thousand of them. The CRDs that
//! plumb installs have a printer column for every field that a list needs, so only those columns are requested. With
//! another CRD (Argo CD's own), whole objects are read, and the list is the same.

use plumb_core::app::Pause;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ApiError, ClusterClient, Selection, Table};
use serde_json::{Map, Value, json};

use crate::kinds;

/// A kind, and which printer column holds which of its fields.
pub(crate) struct ListColumns {
    gvk: GroupVersionKind,
    columns: &'static [Column],
    /// The required fields of the kind, empty.
    required: Value,
}

/// One column.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    /// The path of the field.
    field: &'static [&'static str],
    /// True if the cell holds JSON text. The API server prints lists and maps that way.
    is_json: bool,
}

const fn text(name: &'static str, field: &'static [&'static str]) -> Column {
    Column { name, field, is_json: false }
}

const fn json_text(name: &'static str, field: &'static [&'static str]) -> Column {
    Column { name, field, is_json: true }
}

const APPLICATION: [Column; 15] = [
    text("Sync Status", &["status", "sync", "status"]),
    text("Health Status", &["status", "health", "status"]),
    text("Project", &["spec", "project"]),
    text("Cluster", &["spec", "destination", "name"]),
    text("Server", &["spec", "destination", "server"]),
    text("Destination", &["spec", "destination", "namespace"]),
    text("Repository", &["spec", "source", "repoURL"]),
    text("Path", &["spec", "source", "path"]),
    text("Chart", &["spec", "source", "chart"]),
    text("Target", &["spec", "source", "targetRevision"]),
    json_text("Sources", &["spec", "sources"]),
    json_text("Automated", &["spec", "syncPolicy", "automated"]),
    json_text("Conditions", &["status", "conditions"]),
    text("Pause", &["metadata", "annotations", Pause::ANNOTATION]),
    text("Health Since", &["status", "health", "lastTransitionTime"]),
];

const DRIFT_REPORT: [Column; 6] = [
    text("Counted", &["summary", "counted"]),
    text("Explained", &["summary", "explained"]),
    text("Quiet", &["summary", "quiet"]),
    text("Worst", &["summary", "worst"]),
    text("Oldest", &["summary", "since"]),
    json_text("Pauses", &["pauses"]),
];

impl ListColumns {
    /// Applications: what `app list` shows and filters by.
    pub(crate) fn application() -> Self {
        let required = json!({"spec": {"destination": {}, "project": ""}});
        Self { gvk: kinds::application(), columns: &APPLICATION, required }
    }

    /// Reports: their summary and pauses.
    pub(crate) fn drift_report() -> Self {
        Self { gvk: kinds::drift_report(), columns: &DRIFT_REPORT, required: json!({"findings": []}) }
    }

    /// The objects, with at least the fields of the columns.
    pub(crate) async fn list(
        &self,
        client: &ClusterClient,
        selection: &Selection,
    ) -> Result<Vec<Manifest>, ApiError> {
        let table = match client.list_table(&self.gvk, selection).await {
            Ok(table) => table,
            // The API server does not support tables for this kind.
            Err(error) if error.code() == Some(406) || matches!(error, ApiError::Unreadable { .. }) => {
                return client.list(&self.gvk, selection).await;
            }
            Err(error) => return Err(error),
        };
        match self.read(&table) {
            Some(objects) => Ok(objects),
            None => client.list(&self.gvk, selection).await,
        }
    }

    /// The rows as objects; `None` if a column is missing or a cell cannot be read.
    fn read(&self, table: &Table) -> Option<Vec<Manifest>> {
        let columns: Vec<(usize, Column)> = self
            .columns
            .iter()
            .map(|column| Some((table.position(column.name)?, *column)))
            .collect::<Option<_>>()?;
        let object = |row: &plumb_kube::TableRow| {
            let mut object = self.required.clone();
            put(&mut object, &["apiVersion"], json!(self.gvk.api_version()))?;
            put(&mut object, &["kind"], json!(self.gvk.kind))?;
            put(&mut object, &["metadata"], json!({"name": row.name, "namespace": row.namespace}))?;
            for (at, column) in &columns {
                let value = match row.cells.get(*at)? {
                    Value::Null => continue,
                    Value::String(text) if column.is_json => serde_json::from_str(text).ok()?,
                    cell => cell.clone(),
                };
                put(&mut object, column.field, value)?;
            }
            Manifest::new(object).ok()
        };
        table.rows.iter().map(object).collect()
    }
}

/// Sets a field, and creates the maps on its path.
fn put(object: &mut Value, field: &[&str], value: Value) -> Option<()> {
    let (last, way) = field.split_last()?;
    let mut place = object;
    for step in way {
        place = place.as_object_mut()?.entry(*step).or_insert_with(|| Value::Object(Map::new()));
    }
    place.as_object_mut()?.insert((*last).to_owned(), value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_crd::{Application, DriftReport};
    use plumb_kube::TableRow;

    /// The path of a column, as a definition writes it.
    fn path(column: &Column) -> String {
        column.field.iter().fold(String::new(), |path, step| format!("{path}.{}", step.replace('.', "\\.")))
    }

    #[test]
    fn every_column_is_in_the_definition() {
        for sketch in [ListColumns::application(), ListColumns::drift_report()] {
            let crds = plumb_crd::crds();
            let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == *sketch.gvk.kind).unwrap();
            let defined = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
            for column in sketch.columns {
                let found = defined.iter().find(|defined| defined["name"] == column.name).unwrap();
                assert_eq!(found["jsonPath"], path(column), "{}", column.name);
            }
        }
    }

    fn table(sketch: &ListColumns, cells: &[(&str, Value)]) -> Table {
        let columns: Vec<String> = sketch.columns.iter().map(|column| column.name.to_owned()).collect();
        let cell = |name: &String| {
            cells.iter().find(|(given, _)| given == name).map_or(Value::Null, |(_, value)| value.clone())
        };
        let row = TableRow {
            namespace: Some("argocd".to_owned()),
            name: "web".to_owned(),
            cells: columns.iter().map(cell).collect(),
        };
        Table { columns, rows: vec![row] }
    }

    #[test]
    fn a_row_is_an_application() {
        let sketch = ListColumns::application();
        let cells = [
            ("Sync Status", json!("OutOfSync")),
            ("Destination", json!("shop")),
            (
                "Sources",
                json!(r#"[{"repoURL":"https://example.com/a.git","path":"x"},{"repoURL":"b","chart":"c"}]"#),
            ),
            ("Automated", json!(r#"{"prune":true}"#)),
            ("Conditions", json!(r#"[{"type":"SyncError","message":"no"}]"#)),
            ("Pause", json!("release freeze")),
        ];
        let read = sketch.read(&table(&sketch, &cells)).unwrap();
        let app = Application::from_json(read[0].value()).unwrap();
        assert_eq!((&*app.metadata.namespace, &*app.metadata.name), ("argocd", "web"));
        assert_eq!(super::super::describe::policy(&app), "Auto-Prune");
        assert_eq!(super::super::describe::conditions(&app), "SyncError");
        assert_eq!(app.spec.sources.len(), 2);
        assert_eq!(app.spec.destination.namespace, "shop");
        assert_eq!(app.annotation(Pause::ANNOTATION), Some("release freeze"));
    }

    #[test]
    fn a_row_is_a_report() {
        let sketch = ListColumns::drift_report();
        let cells = [
            ("Counted", json!(1)),
            ("Explained", json!(2)),
            ("Worst", json!("LiveEdit")),
            ("Oldest", json!("2026-11-15T10:00:00Z")),
        ];
        let read = sketch.read(&table(&sketch, &cells)).unwrap();
        let report = DriftReport::from_json(read[0].value()).unwrap();
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        assert_eq!(super::super::describe::drift(&report, now), "1 drifted: LiveEdit, 3h");
    }

    #[test]
    fn another_definition_is_not_guessed_at() {
        let sketch = ListColumns::application();
        let mut foreign = table(&sketch, &[]);
        foreign.columns[5] = "Namespace".to_owned();
        assert!(sketch.read(&foreign).is_none());
        assert!(sketch.read(&table(&sketch, &[("Sources", json!("map[a:b]"))])).is_none());
    }
}
