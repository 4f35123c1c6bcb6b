//! Changes that replace pods.

use serde_json::Value;

use crate::object::{FieldPath, Manifest};

/// Does this change replace the pods of a workload? A changed template does, unless the workload waits for a user.
pub(super) fn restarts(new: &Manifest, changed: &[FieldPath]) -> bool {
    let is_workload = matches!(
        (new.group(), new.kind()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") | ("argoproj.io", "Rollout")
    );
    let waits = new.value().pointer("/spec/paused") == Some(&Value::Bool(true))
        || new.value().pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete");
    let template = FieldPath::from_pointer("/spec/template");
    is_workload && !waits && changed.iter().any(|path| path.starts_with(&template))
}
