//! Git sets a field to the value that it would have anyway.

use serde_json::Value;

use crate::compare::{Difference, Forgiven, is_zero, twin};
use crate::drift::case::{Case, last_field, leaf_places, show};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::fields::is_controller_by_name;
use crate::object::FieldPath;

/// Git writes null, which the API server drops.
pub(in crate::drift) fn null(forgiven: &Forgiven<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        "Git sets null, which is the same as leaving the field out",
    )
}

/// Git writes an empty list that is merged item by item. Applying it changes nothing, and leaves no owner.
pub(in crate::drift) fn no_items(forgiven: &Forgiven<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        "Git sets an empty list, which asks for no items: the same as leaving the field out",
    )
}

/// Git writes a zero value or a default, and the cluster lacks the field.
///
/// A missing field and `false` can differ (`automountServiceAccountToken`). So it takes a proof that the API server itself
/// dropped the value: our apply still owns the field. A custom resource passes through the Go types of its operator, which
/// drop zero values on every write: there it takes evidence that such a write dropped it, and not a user who removed a line.
pub(in crate::drift) fn zero(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Option<Explained> {
    let dropped_by_server = case.is_ours(&forgiven.path);
    let (actor, since) = if dropped_by_server { (None, None) } else { case.witnessed_writer() };
    if !dropped_by_server && (case.is_built_in() || !is_dropped_by_types(case, forgiven, actor.as_deref())) {
        return None;
    }
    let value = forgiven.desired.map(show).unwrap_or_default();
    let by = match (&actor, dropped_by_server) {
        (Some(actor), _) => format!("`{actor}` dropped it when writing the object back"),
        (None, true) => "the API server drops it".to_owned(),
        (None, false) => "a typed client dropped it when writing the object back".to_owned(),
    };
    let mut explained = Explained::new(
        DriftClass::PhantomDefault,
        forgiven.desired_path.clone(),
        false,
        format!("Git sets {value}, which is the same as leaving the field out; {by}"),
    );
    explained.actor = actor;
    explained.since = since;
    Some(explained)
}

/// Did the Go types of an operator drop this value? They drop all values of that kind together, and none that has a
/// pointer type. A value that equals the schema's default means the same when it is absent.
fn is_dropped_by_types(case: &Case<'_>, forgiven: &Forgiven<'_>, writer: Option<&str>) -> bool {
    let Some(desired) = forgiven.desired else { return true };
    if !is_zero(desired) {
        return true;
    }
    // The types of Argo CD leave out zero values, and absent means the same.
    if case.desired.group() == "argoproj.io" {
        return true;
    }
    let has_pointer_type = last_field(&forgiven.path).is_some_and(|name| POINTERS.contains(&name));
    // The witness knows only the last writer of the object, who may have changed something else since.
    let is_by_controller =
        writer.is_none_or(is_controller_by_name) || case.was_found_dropped(&forgiven.desired_path);
    !has_pointer_type && is_by_controller && !is_kept_elsewhere(case, desired)
}

/// Fields of Kubernetes' own types for which absent is not `false` or zero. Custom resources embed these types.
const POINTERS: [&str; 14] = [
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "hostUsers",
    "optional",
    "privileged",
    "readOnlyRootFilesystem",
    "replicas",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "suspend",
];

/// Does the live object still have another zero value of Git of the same JSON type?
fn is_kept_elsewhere(case: &Case<'_>, dropped: &Value) -> bool {
    let schema = case.kind.map(|kind| kind.root);
    let (desired, live) = (case.desired.value(), case.live.value());
    let is_same_type =
        |value: &Value| std::mem::discriminant(value) == std::mem::discriminant(dropped) && is_zero(value);
    let content = desired.as_object().into_iter().flatten().filter(|(name, _)| name.as_str() != "metadata");
    content.into_iter().any(|(name, value)| {
        leaf_places(value, FieldPath::root().field(name.as_str())).iter().any(|place| {
            place.find(desired).is_some_and(is_same_type)
                && twin(place, desired, live, schema)
                    .is_some_and(|twin| twin.find(live).is_some_and(is_same_type))
        })
    })
}

/// The API server reads Git's empty value as "you choose", and the dry-run shows that it keeps its choice.
pub(in crate::drift) fn chosen_by_server(difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        difference.desired_path.clone(),
        false,
        "Git leaves the value empty, so the API server chooses one; a dry-run would not change it",
    )
}

/// The dry-run drops the value too.
pub(in crate::drift) fn dropped_by_server(field: FieldPath) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        field,
        false,
        "Git sets an empty value, which the API server drops (a dry-run shows it)",
    )
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(FixKind::EditGit, "remove the line from Git")
}
