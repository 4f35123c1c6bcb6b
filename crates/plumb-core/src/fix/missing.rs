//! Objects that Argo CD always wants back: what Git has to change so that they come, and stay.

use serde_json::Value;

use super::hook_policy::is_hook;
use super::{FixGoal, LastSync, Subject};
use crate::drift::DriftClass;
use crate::object::{FieldPath, Manifest, Segment};
use crate::references::is_built_in_group;
use crate::yaml::Operation;

/// A change of Git's object, with its reason.
pub(super) struct Change {
    pub(super) operations: Vec<Operation>,
    pub(super) why: &'static str,
}

impl Change {
    /// Argo CD wants a Job back that its own time to live removed. One that stays is not missing.
    pub(super) fn keep_job(subject: &Subject<'_>, goal: FixGoal) -> Option<Self> {
        let remove = vec![Operation::Remove { path: time_to_live(subject, goal)? }];
        let is_known_to_have_run = subject.finding.class == DriftClass::HookResidue;
        // A Job that waits for somebody to start it was removed by somebody.
        let has_run = subject.last_sync == LastSync::Applied && !is_suspended(subject.desired?);
        let why = if is_known_to_have_run {
            "Argo CD shows a Job as missing that its time to live removed; now it stays"
        } else if has_run {
            "Argo CD shows a Job as missing that its time to live removed; it runs once more with the next sync, and stays"
        } else {
            return None;
        };
        Some(Self { operations: remove, why })
    }

    /// Server-side apply refuses a null where the schema does not permit it, and client-side apply drops it.
    pub(super) fn drop_nulls(subject: &Subject<'_>, goal: FixGoal) -> Option<Self> {
        let LastSync::Refused(message) = subject.last_sync else { return None };
        let desired = subject.desired.filter(|_| goal == FixGoal::ArgoCd && subject.live.is_none())?;
        let mut places = Vec::new();
        collect_nulls(desired.value(), &FieldPath::root(), &mut places);
        // A custom resource may permit null, and mean something by it: only what the API server names goes.
        if !is_built_in_group(desired.group()) {
            places.retain(|place| is_named(message, place));
        }
        // From the end, so that no operation shifts the positions of a later one.
        places.reverse();
        let operations: Vec<Operation> = places.into_iter().map(|path| Operation::Remove { path }).collect();
        let why = "the API server refuses null here; without the line the object is the same";
        (!operations.is_empty()).then_some(Self { operations, why })
    }
}

/// The time to live of a Job that is missing for Argo CD.
pub(super) fn time_to_live(subject: &Subject<'_>, goal: FixGoal) -> Option<FieldPath> {
    let desired = subject.desired.filter(|job| job.kind() == "Job" && job.group() == "batch")?;
    let is_gone = goal == FixGoal::ArgoCd && subject.live.is_none() && !is_hook(desired);
    let path = FieldPath::root().field("spec").field("ttlSecondsAfterFinished");
    path.find(desired.value()).filter(|_| is_gone)?;
    Some(path)
}

fn is_suspended(job: &Manifest) -> bool {
    job.value().pointer("/spec/suspend").and_then(Value::as_bool) == Some(true)
}

fn collect_nulls(value: &Value, place: &FieldPath, found: &mut Vec<FieldPath>) {
    match value {
        Value::Null => found.push(place.clone()),
        Value::Object(map) => {
            map.iter().for_each(|(name, inner)| collect_nulls(inner, &place.field(name.as_str()), found));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, inner)| collect_nulls(inner, &place.index(index), found));
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Does the message call the null of this field invalid? The API server writes `spec.list[0].field: Invalid value: "null"`.
fn is_named(message: &str, place: &FieldPath) -> bool {
    let mut name = String::new();
    for segment in place.segments() {
        match segment {
            Segment::Index(index) => name.extend(["[", &index.to_string(), "]"]),
            Segment::Field(field) if name.is_empty() => name.push_str(field.as_str()),
            Segment::Field(field) => {
                name.push('.');
                name.push_str(field.as_str());
            }
        }
    }
    let needle = format!("{name}: Invalid value: \"null\"");
    message.match_indices(&needle).any(|(at, _)| {
        let before = message.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|char| char == ' ' || char == '[' || char == ',')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::drift::{Finding, Fix, FixKind};

    fn dropped(desired: Value, message: &str) -> Vec<String> {
        let desired = Manifest::new(desired).expect("an object");
        let finding = Finding {
            key: desired.key().expect("named"),
            class: DriftClass::Behind,
            rule: "not-in-cluster".into(),
            fields: Vec::new(),
            counts: true,
            actor: None,
            since: None,
            evidence: Vec::new(),
            fix: Fix { kind: FixKind::Sync, text: String::new(), patch: None },
        };
        let subject = Subject {
            finding: &finding,
            desired: Some(&desired),
            origin: None,
            live: None,
            is_red_in_argo_cd: Some(true),
            keeps_live: false,
            keeper: None,
            kept: None,
            is_asked_for: false,
            is_alone: true,
            last_sync: LastSync::Refused(message),
        };
        assert!(Change::drop_nulls(&subject, FixGoal::Plumb).is_none(), "plumb leaves nulls out by itself");
        let unknown = Subject { last_sync: LastSync::Unknown, ..subject };
        assert!(Change::drop_nulls(&unknown, FixGoal::ArgoCd).is_none());
        let found = Change::drop_nulls(&subject, FixGoal::ArgoCd);
        found
            .into_iter()
            .flat_map(|change| change.operations)
            .map(|operation| operation.to_string())
            .collect()
    }

    #[test]
    fn nulls_go_where_the_api_server_refused_them() {
        let note = json!({"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "memo", "namespace": "n"},
            "spec": {"text": null, "texts": null, "items": [{"a": null}, {"a": 1}]}});
        let message = "Note.example.com \"memo\" is invalid: [spec.items[0].a: Invalid value: \"null\": it must be a string, \
            spec.text: Invalid value: \"null\": spec.text in body must be of type string: \"null\"]";
        assert_eq!(dropped(note.clone(), message), ["remove /spec/text", "remove /spec/items/0/a"]);
        assert!(dropped(note, "admission webhook denied the request").is_empty());
        // Null never means anything in a kind of Kubernetes itself.
        let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"},
            "spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": null}}}]}}}});
        let message = "spec.template.spec.containers[0].resources.requests: Invalid value: \"10m\": must be less than or equal to cpu limit of 0";
        assert_eq!(dropped(web, message), ["remove /spec/template/spec/containers/0/resources/limits/cpu"]);
    }
}
