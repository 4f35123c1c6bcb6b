//! Annotations of a live object that stem from Git.

use jiff::Timestamp;
use serde_json::Value;

use super::{Entry, Owners};
use crate::app::{App, Pause};
use crate::object::{FieldPath, Manifest, ObjectKey};
use crate::tracking::FIELD_MANAGER;

/// The annotation of a live object, if an apply from Git wrote it. Any client that may edit the object can add an
/// annotation; one that says how plumb treats the object is believed only if plumb or Argo CD wrote it.
pub fn annotation_of_git<'live>(live: &'live Manifest, key: &str) -> Option<&'live str> {
    let text = live.annotation(key)?;
    let owners = Owners::of(live);
    let place = FieldPath::root().field("metadata").field("annotations").field(key);
    let is_applied = match owners.ours() {
        Some(ours) => ours.names(&place, live.value()),
        // Argo CD applied it client-side, and plumb has not applied it yet.
        None => {
            owners.of_place(&place).any(|entry| entry.manager == FIELD_MANAGER && entry.subresource.is_none())
        }
    };
    is_applied.then_some(text)
}

/// When an annotation was last written, as the API server recorded it.
pub fn annotation_written_at(object: &Value, key: &str) -> Option<Timestamp> {
    let place = FieldPath::root().field("metadata").field("annotations").field(key);
    Owners::of_value(object).of_place(&place).filter_map(Entry::time).max()
}

/// The pause of a live object that holds at this time. It is believed where the right to write it is the right to pause:
/// on the app's own Application, and on an Application that is an object of the app.
pub fn object_pause(app: &App, key: &ObjectKey, live: &Manifest, now: Timestamp) -> Option<Pause> {
    let is_app = key.kind == "Application" && key.group == "argoproj.io";
    let own = || {
        let text = live.annotation(Pause::ANNOTATION).filter(|_| is_app)?;
        Some(Pause::parse(text).written_at(annotation_written_at(live.value(), Pause::ANNOTATION)))
    };
    app.paused_objects.get(key).cloned().or_else(own).filter(|pause| pause.holds_at(now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entries: &Value) -> Option<String> {
        let live = Manifest::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "annotations": {"a": "b"}, "managedFields": entries},
        }))
        .expect("an object");
        annotation_of_git(&live, "a").map(str::to_owned)
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    #[test]
    fn only_an_apply_from_git_is_believed() {
        let annotation = json!({"f:metadata": {"f:annotations": {"f:a": {}}}});
        let data = json!({"f:data": {"f:k": {}}});
        let ours = |fields| entry("argocd-controller", "Apply", fields);
        assert_eq!(read(&json!([ours(&annotation)])).as_deref(), Some("b"));
        assert_eq!(read(&json!([entry("argocd-controller", "Update", &annotation)])).as_deref(), Some("b"));
        for forged in ["kubectl-annotate", "kube-controller-manager", "argocd-controller"] {
            assert_eq!(read(&json!([ours(&data), entry(forged, "Update", &annotation)])), None, "{forged}");
        }
        assert_eq!(read(&json!([entry("kubectl", "Update", &annotation)])), None);
        assert_eq!(read(&json!([])), None);
    }
}
