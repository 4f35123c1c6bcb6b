//! Objects as a table with the printer columns of their kind, as `kubectl get` reads them.
//!
//! The server sends only the cells. A thousand Applications with their status are thirty megabytes, which
//! take the server a second to write; as a table they are half a megabyte.

use http::Method;
use plumb_core::object::GroupVersionKind;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Call, ClusterClient};
use crate::error::ApiError;
use crate::read::Selection;

/// The objects of a kind as a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// One row per object.
    pub rows: Vec<TableRow>,
}

/// One object of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRow {
    /// Namespace of the object; `None` if it is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// One value per column; null where the object has none.
    pub cells: Vec<Value>,
}

const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The column that every kind has.
const NAME: &str = "Name";

impl Table {
    /// The position of the column of this name.
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }
}

impl ClusterClient {
    /// All objects of a kind as a table, in one answer.
    ///
    /// There is no page size and no `resourceVersion=0`: the server then answers from its watch cache once
    /// that is up to date, so that a user who has just changed an object sees the change. With a page size it
    /// would read from etcd.
    pub async fn list_table(&self, gvk: &GroupVersionKind, selection: &Selection) -> Result<Table, ApiError> {
        let resource = self.catalog().find(gvk)?;
        let path = resource.collection_path(selection.namespace.as_deref())?;
        // Within one namespace the name identifies an object; its metadata would be ten times the size of the
        // cells.
        let include = if selection.namespace.is_some() { "None" } else { "Metadata" };
        let call = Call::new(Method::GET, path.clone()).accepting(AS_TABLE).query("includeObject", include);
        let answer = self.call(selection.narrow(call)).await?;
        let wire: Wire = serde_json::from_slice(&answer.body)
            .map_err(|source| ApiError::unreadable(&path, "a table of objects", Some(source)))?;
        wire.into_table(selection.namespace.as_deref())
            .ok_or_else(|| ApiError::unreadable(&path, "a table of objects", None))
    }
}

#[derive(Deserialize)]
struct Wire {
    kind: String,
    #[serde(default, rename = "columnDefinitions")]
    columns: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    cells: Vec<Value>,
    #[serde(default)]
    object: Option<Object>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

impl Wire {
    /// `None` if it is not a table, or if a row does not name its object.
    fn into_table(self, namespace: Option<&str>) -> Option<Table> {
        if self.kind != "Table" {
            return None;
        }
        let columns: Vec<String> = self.columns.into_iter().map(|column| column.name).collect();
        let name_at = columns.iter().position(|name| name == NAME);
        let row = |row: Row| {
            let (namespace, name) = match row.object {
                Some(Object { metadata }) => (metadata.namespace, metadata.name),
                None => (namespace.map(str::to_owned), row.cells.get(name_at?)?.as_str().map(str::to_owned)?),
            };
            Some(TableRow { namespace, name, cells: row.cells })
        };
        let rows = self.rows.into_iter().map(row).collect::<Option<_>>()?;
        Some(Table { columns, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(wire: Value, namespace: Option<&str>) -> Option<Table> {
        serde_json::from_value::<Wire>(wire).ok()?.into_table(namespace)
    }

    #[test]
    fn a_row_knows_its_object() {
        let columns = json!([{"name": "Name", "type": "string"}, {"name": "Age", "type": "date"}]);
        let bare = json!({"kind": "Table", "columnDefinitions": columns,
            "rows": [{"cells": ["web", null], "object": null}]});
        let read = table(bare.clone(), Some("shop")).unwrap();
        assert_eq!(read.position("Age"), Some(1));
        assert_eq!(
            read.rows,
            [TableRow {
                namespace: Some("shop".to_owned()),
                name: "web".to_owned(),
                cells: vec![json!("web"), json!(null)]
            }]
        );
        let mut whole = bare;
        whole["rows"][0]["object"] = json!({"metadata": {"name": "other", "namespace": "elsewhere"}});
        let read = table(whole, None).unwrap();
        assert_eq!((read.rows[0].namespace.as_deref(), &*read.rows[0].name), (Some("elsewhere"), "other"));
    }

    #[test]
    fn what_is_no_table_is_not_taken_for_an_empty_one() {
        assert_eq!(table(json!({"kind": "ApplicationList", "items": [{}]}), Some("a")), None);
        let nameless = json!({"kind": "Table", "columnDefinitions": [{"name": "Age"}],
            "rows": [{"cells": ["3h"]}]});
        assert_eq!(table(nameless, Some("a")), None);
    }
}
