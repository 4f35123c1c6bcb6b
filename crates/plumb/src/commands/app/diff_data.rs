//! The differences of an app as data: `plumb app diff -o json`.

use plumb_core::object::{FieldPath, Manifest};
use plumb_crd::Wire;
use plumb_crd::drift_report::DriftFinding;
use plumb_engine::Judged;
use plumb_kube::Target;
use serde_json::{Value, json};

use crate::secrets::mask::Masks;
use crate::view::describe;

/// True if a difference of the object makes the app `OutOfSync`.
pub(super) fn counts(object: &Judged) -> bool {
    object.verdict.counts_for_app && object.verdict.findings.iter().any(|finding| finding.counts)
}

/// What the engine found.
pub(super) fn of_report(target: &Target, findings: &[DriftFinding], all: bool) -> Value {
    let shown = findings.iter().filter(|finding| finding.counts || all);
    document(target, findings.iter().any(|finding| finding.counts), shown.map(Wire::write).collect(), &[])
}

/// What was compared here, with the values on both sides.
pub(super) fn of_judged<'objects>(
    target: &Target,
    objects: impl Iterator<Item = &'objects Judged>,
    denied: &[String],
    all: bool,
    masks: &Masks,
) -> Value {
    let (mut items, mut differs) = (Vec::new(), !denied.is_empty());
    for object in objects {
        differs |= counts(object);
        for finding in object.verdict.findings.iter().filter(|finding| finding.counts || all) {
            let mut item = DriftFinding::of(finding).write();
            item["values"] = values(object, &finding.fields, masks);
            items.push(item);
        }
    }
    document(target, differs, items, denied)
}

fn document(target: &Target, counts: bool, items: Vec<Value>, denied: &[String]) -> Value {
    let mut document = json!({
        "application": {"namespace": target.namespace, "name": target.name},
        "counts": counts,
        "notCompared": denied,
    });
    document["items"] = Value::Array(items);
    document
}

/// Each field on both sides, or the whole object. A side that does not have it is left out.
fn values(object: &Judged, fields: &[FieldPath], masks: &Masks) -> Value {
    let live = object.live.as_deref().map(|live| masks.hide(describe::readable(live)));
    let desired = object.desired.as_ref().map(|desired| masks.hide(Manifest::value(desired).clone()));
    if fields.is_empty() {
        return json!([sides("", live.as_ref(), desired.as_ref())]);
    }
    let whole_live = object.live.as_deref().map(|live| masks.hide(live.value().clone()));
    let value = |field: &FieldPath| {
        let of = |side: Option<&Value>| side.and_then(|side| field.find(side)).cloned();
        let (live, desired) = (of(whole_live.as_ref()), of(desired.as_ref()));
        sides(&field.to_string(), live.as_ref(), desired.as_ref())
    };
    fields.iter().map(value).collect()
}

fn sides(field: &str, live: Option<&Value>, desired: Option<&Value>) -> Value {
    let mut value = json!({"field": field});
    for (name, side) in [("live", live), ("desired", desired)] {
        if let Some(side) = side {
            value[name] = side.clone();
        }
    }
    value
}
