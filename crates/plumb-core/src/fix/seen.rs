//! What Argo CD's comparison looks at, in any of its modes. `tools/argocd/verdicts` is that comparison.

use serde_json::Value;

use crate::drift::{DriftClass, Finding};
use crate::object::{FieldPath, Manifest, Segment};
use crate::references::is_built_in_group;

/// Does Argo CD compare a field of the live object? It does if Git sets it, or sets a list around it: lists of custom
/// resources are compared as a whole.
pub(super) fn is_compared(desired: &Manifest, field: &FieldPath) -> bool {
    let mut place = FieldPath::root();
    for segment in field.segments() {
        place.push(segment.clone());
        match place.find(desired.value()) {
            Some(Value::Array(_)) => return true,
            Some(_) => {}
            None => return false,
        }
    }
    true
}

/// Does Argo CD show a default that the API server fills in? It knows the defaults of Kubernetes' own kinds, except the
/// version and kind of claim templates.
pub(super) fn is_seen_default(desired: &Manifest, field: &FieldPath) -> bool {
    let names: Vec<String> = field.segments().iter().map(name).collect();
    let is_type_of_claim = matches!(names.as_slice(),
        [.., around, _, name] if around == "volumeClaimTemplates" && (name == "apiVersion" || name == "kind"));
    is_compared(desired, field) && (!is_built_in_group(desired.group()) || is_type_of_claim)
}

/// Does Argo CD show the object as `OutOfSync` because of this finding, as far as its fields tell?
pub fn is_shown_by_argo_cd(finding: &Finding, desired: Option<&Manifest>) -> bool {
    let is_shown = |field: &FieldPath| {
        desired.is_none_or(|desired| match finding.class {
            DriftClass::SchemaDefault => is_seen_default(desired, field),
            _ => is_compared(desired, field),
        })
    };
    finding.counts || finding.fields.iter().any(is_shown)
}

fn name(segment: &Segment) -> String {
    match segment {
        Segment::Field(name) => name.to_string(),
        Segment::Index(index) => index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn argo_cd_compares_what_git_sets_and_whole_lists() {
        let custom = json!({"apiVersion": "example.com/v1", "kind": "Store", "metadata": {"name": "s"},
            "spec": {"size": 1, "list": [{"a": 1}]}});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
            "spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}], "template": {"spec": {"containers": [{}]}}}});
        for (object, field, compared, seen) in [
            (&custom, "/spec/size", true, true),
            (&custom, "/spec/other", false, false),
            (&custom, "/spec/list/0/b", true, true),
            (&custom, "/spec/list/0/deep/c", true, true),
            (&set, "/spec/replicas", false, false),
            (&set, "/spec/template/spec/containers/0/imagePullPolicy", true, false),
            (&set, "/spec/volumeClaimTemplates/0/kind", true, true),
            (&set, "/spec/volumeClaimTemplates/0/spec/volumeMode", true, false),
        ] {
            let manifest = Manifest::new(object.clone()).expect("an object");
            let field = FieldPath::from_pointer(field);
            assert_eq!(
                (is_compared(&manifest, &field), is_seen_default(&manifest, &field)),
                (compared, seen),
                "{field}"
            );
        }
    }
}
