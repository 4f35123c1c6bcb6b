//! A change of what Kustomize renders, as a patch in the overlay.

use serde_json::{Map, Value, json};

use super::ObjectChange;
use crate::object::{FieldPath, Manifest, Segment};
use crate::yaml::Operation;

/// The names by which `patches` of a kustomization may find an object that it renders: the rendered name, and the one
/// before the kustomization's own prefix and suffix, which come after its patches.
pub fn names_for_patches(kustomization: &Value, rendered: &Manifest) -> Vec<String> {
    let name = rendered.name().unwrap_or_default();
    let text = |field: &str| kustomization.get(field).and_then(Value::as_str).unwrap_or_default();
    let bare = name.strip_prefix(text("namePrefix")).and_then(|rest| rest.strip_suffix(text("nameSuffix")));
    let bare = bare.filter(|bare| *bare != name && !bare.is_empty());
    std::iter::once(name).chain(bare).map(str::to_owned).collect()
}

/// What adds the change to a kustomization: one entry of `patches`, for exactly this object, by one of its
/// [names](names_for_patches). `None` if no JSON patch can say it.
pub fn overlay_patch(change: &ObjectChange, rendered: &Manifest, name: &str) -> Option<Operation> {
    let mut next = rendered.value().clone();
    let mut steps = Vec::new();
    for operation in &change.operations {
        steps.push(step(operation, &next)?);
        next = operation.apply(&next).ok()?;
    }
    let gvk = rendered.gvk();
    let fields = [
        ("group", gvk.group.as_str()),
        ("version", gvk.version.as_str()),
        ("kind", gvk.kind.as_str()),
        ("name", name),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let target: Map<String, Value> =
        fields.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    let lines: Vec<String> = steps.iter().map(|step| format!("- {step}\n")).collect();
    Some(Operation::Append {
        path: FieldPath::root().field("patches"),
        value: json!({"target": target, "patch": lines.concat()}),
        comment: Some(change.why.clone()),
    })
}

/// The operation as RFC 6902 has it: it adds only to maps and lists that exist.
fn step(operation: &Operation, object: &Value) -> Option<Value> {
    Some(match operation {
        Operation::Set { path, value } | Operation::Explain { path, value, .. }
            if path.find(object).is_some() =>
        {
            json!({"op": "replace", "path": path.to_string(), "value": value})
        }
        Operation::Set { path, value } | Operation::Explain { path, value, .. } => {
            let (path, value) = with_parents(path, value, object)?;
            json!({"op": "add", "path": path.to_string(), "value": value})
        }
        Operation::Append { path, value, .. } if path.find(object).is_some_and(Value::is_array) => {
            json!({"op": "add", "path": format!("{path}/-"), "value": value})
        }
        Operation::Append { path, value, .. } => {
            let (path, value) = with_parents(path, &json!([value]), object)?;
            json!({"op": "add", "path": path.to_string(), "value": value})
        }
        Operation::Remove { path } => json!({"op": "remove", "path": path.to_string()}),
        Operation::Rename { path, to } => {
            json!({"op": "move", "from": path.to_string(), "path": path.parent()?.field(to.as_str()).to_string()})
        }
    })
}

/// The place and the value with the maps around it that the object lacks.
fn with_parents(path: &FieldPath, value: &Value, object: &Value) -> Option<(FieldPath, Value)> {
    let (mut path, mut value) = (path.clone(), value.clone());
    while let Some(parent) = path.parent().filter(|parent| parent.find(object).is_none()) {
        let Segment::Field(name) = path.segments().last()? else { return None };
        value = json!({name.as_str(): value});
        path = parent;
    }
    Some((path, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Origin;
    use crate::object::ObjectKey;

    #[test]
    fn an_overlay_patches_what_it_has_not_renamed_yet() {
        let rendered = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "prod-web-a"}});
        let rendered = Manifest::new(rendered).expect("an object");
        let names = |kustomization: &Value| names_for_patches(kustomization, &rendered);
        assert_eq!(names(&json!({})), ["prod-web-a"]);
        assert_eq!(names(&json!({"namePrefix": "prod-"})), ["prod-web-a", "web-a"]);
        assert_eq!(names(&json!({"namePrefix": "prod-", "nameSuffix": "-a"})), ["prod-web-a", "web"]);
        assert_eq!(names(&json!({"namePrefix": "test-"})), ["prod-web-a"]);
    }

    #[test]
    fn a_patch_names_one_object_and_says_only_the_change() {
        let rendered = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 1, "paused": false}});
        let at = FieldPath::from_pointer;
        let change = ObjectChange {
            key: ObjectKey::new("apps", "Deployment", Some("shop".to_owned()), "web"),
            origin: Origin { source: 0, file: "base/web.yaml".to_owned(), line: 1, verbatim: false },
            operations: vec![
                Operation::Remove { path: at("/spec/paused") },
                Operation::Set { path: at("/spec/replicas"), value: json!(2) },
                Operation::Set { path: at("/spec/strategy/rollingUpdate/maxSurge"), value: json!("25%") },
            ],
            why: "because".to_owned(),
        };
        let Some(Operation::Append { path, value, comment }) =
            overlay_patch(&change, &Manifest::new(rendered).expect("an object"), "web")
        else {
            panic!("no patch");
        };
        assert_eq!((path.to_string().as_str(), comment.as_deref()), ("/patches", Some("because")));
        assert_eq!(
            value["target"],
            json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"})
        );
        let expected = "- {\"op\":\"remove\",\"path\":\"/spec/paused\"}\n\
            - {\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}\n\
            - {\"op\":\"add\",\"path\":\"/spec/strategy\",\"value\":{\"rollingUpdate\":{\"maxSurge\":\"25%\"}}}\n";
        assert_eq!(value["patch"], expected);
    }
}
