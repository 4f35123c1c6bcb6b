//! Git sets a field to the value that it would have anyway.

use serde_json::Value;

use crate::compare::{Change, Difference, Forgiven, is_zero, twin};
use crate::drift::case::{Case, last_field, leaf_places, show};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::fields::is_controller_by_name;
use crate::object::{FieldPath, Segment};
use crate::schema::{Schema, Shape};
use crate::tracking::FIELD_MANAGER;

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
/// A missing field and `false` can differ (`automountServiceAccountToken`). Where they do not, nothing is gone, whoever
/// wrote the object. Elsewhere the owner of the field is no proof, because a client can write `managedFields` too, and the
/// dry-run decides. A custom resource passes through the Go types of its operator, which drop
/// zero values on every write: there it takes evidence that such a write dropped it, and not a user who removed a line.
pub(in crate::drift) fn zero(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Option<Explained> {
    let dropped_by_server = is_dropped_by_server(case, forgiven);
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

/// Does the missing field mean the same, and does the API server drop the value? It stores custom resources as they are
/// written, so there it drops nothing.
fn is_dropped_by_server(case: &Case<'_>, forgiven: &Forgiven<'_>) -> bool {
    let is_same = || forgiven.desired.is_none_or(|desired| is_same_as_absent(&forgiven.path, desired));
    case.is_built_in() && is_declared(case, &forgiven.desired_path) && is_same()
}

/// Is it a field that the schema declares, with a type? A key of a map such as `data`, and a value of any type such as a
/// default in a CRD's schema, are content: there an empty value is a value.
fn is_declared(case: &Case<'_>, field: &FieldPath) -> bool {
    let (Some(map), Some(name)) = (field.parent(), last_field(field)) else { return false };
    case.schema_of(&map).is_some_and(|schema| {
        let declared = schema.fields().find(|(declared, _)| *declared == name);
        declared.is_some_and(|(_, schema)| !matches!(schema.shape(), Shape::Any))
    })
}

/// Did the Go types of an operator drop this value? They drop all values of that kind together, and none that has a
/// pointer type.
fn is_dropped_by_types(case: &Case<'_>, forgiven: &Forgiven<'_>, writer: Option<&str>) -> bool {
    let Some(desired) = forgiven.desired else { return true };
    // They drop no other value. A default of the schema is in the object, unless another client removed the map around it:
    // then no default is filled in, and the operator reads none.
    if !is_zero(desired) {
        return false;
    }
    let name = last_field(&forgiven.path).unwrap_or_default();
    let is_of_argo_cd = case.desired.group() == "argoproj.io"
        && matches!(case.desired.kind(), "Application" | "ApplicationSet" | "AppProject");
    if is_of_argo_cd && is_dropped_by_argo_cd(&forgiven.path, desired) {
        return true;
    }
    let is_excused = is_by_controller(case, forgiven, writer) && !is_kept_elsewhere(case, desired);
    is_excused && !POINTERS.contains(&name)
}

/// Is there evidence that a controller wrote the object back without this value, and not a user who removed a line?
fn is_by_controller(case: &Case<'_>, forgiven: &Forgiven<'_>, writer: Option<&str>) -> bool {
    // A later write of the object by a controller does not make an edit undone.
    if case.named_before(&forgiven.path).is_some() || case.named_before(&forgiven.desired_path).is_some() {
        return false;
    }
    // `managedFields` name the writer of a list or map that is replaced as a whole, and of a null.
    let place = forgiven.whole.as_ref().unwrap_or(&forgiven.path);
    if let Some(entry) = case.other_writer(place).filter(|entry| case.is_after_ours(entry)) {
        return is_controller_by_name(entry.manager);
    }
    // The witness knows only the last writer of the object, who may have changed something else since.
    if case.was_found_dropped(&forgiven.desired_path) {
        return true;
    }
    match writer {
        // The witness does not note what plumb writes: it was another client under plumb's name.
        Some(writer) => writer != FIELD_MANAGER && is_controller_by_name(writer),
        None => case.is_reprinted_by_controller(),
    }
}

/// Fields of Argo CD's own types for which absent is not `false` or zero.
const ARGO_CD_POINTERS: [&str; 4] = ["enabled", "factor", "requeueAfterSeconds", "revisionHistoryLimit"];

/// Do the types of Argo CD drop this value of an Application or a project? They leave out zero values, and absent means
/// the same.
pub(crate) fn is_dropped_by_argo_cd(path: &FieldPath, value: &Value) -> bool {
    is_zero(value) && last_field(path).is_some_and(|name| !ARGO_CD_POINTERS.contains(&name))
}

/// Does an absent field mean the same as this zero value, in all built-in kinds? A list has no pointer type. Of the other
/// values, only these fields are known to have none.
pub(crate) fn is_same_as_absent(path: &FieldPath, zero: &Value) -> bool {
    let Some(name) = last_field(path).filter(|_| is_zero(zero)) else { return false };
    match zero {
        Value::Null | Value::Array(_) => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => PLAIN.contains(&name),
    }
}

/// Fields without a pointer type that charts often set to their zero value. Others cost a dry-run.
const PLAIN: [&str; 27] = [
    "annotations",
    "binaryData",
    "clusterName",
    "data",
    "externalName",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "initialDelaySeconds",
    "labels",
    "limits",
    "loadBalancerIP",
    "minReadySeconds",
    "nodeName",
    "nodeSelector",
    "paused",
    "preserveUnknownFields",
    "priorityClassName",
    "publishNotReadyAddresses",
    "readOnly",
    "requests",
    "stdin",
    "subPath",
    "subdomain",
    "tty",
    "workingDir",
];

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

/// Does the live object still have another zero value of Git of the same JSON type, where the types of an operator would
/// drop it, too?
fn is_kept_elsewhere(case: &Case<'_>, dropped: &Value) -> bool {
    let kept = case.once.kept_zeros.get_or_init(|| {
        let schema = case.kind.map(|kind| kind.root);
        let (desired, live) = (case.desired.value(), case.live.value());
        let content = desired.as_object().into_iter().flatten();
        let content = content.filter(|(name, _)| name.as_str() != "metadata");
        let places =
            content.flat_map(|(name, value)| leaf_places(value, FieldPath::root().field(name.as_str())));
        let zeros = places.filter_map(|place| {
            let zero = place.find(desired).filter(|value| is_zero(value))?;
            let type_of_zero = std::mem::discriminant(zero);
            let place =
                is_dropped_with_others(&place, schema).then(|| twin(&place, desired, live, schema))??;
            let found = place.find(live).filter(|value| is_zero(value))?;
            (std::mem::discriminant(found) == type_of_zero).then_some(type_of_zero)
        });
        zeros.collect()
    });
    kept.contains(&std::mem::discriminant(dropped))
}

/// Would the types of an operator drop a zero value at this place? A field with a default has a pointer type, since zero
/// would otherwise not be told from absent. What the schema leaves open passes through as it is.
fn is_dropped_with_others(place: &FieldPath, schema: Option<Schema<'_>>) -> bool {
    let Some(mut schema) = schema else { return true };
    for segment in place.segments() {
        let below = match (segment, schema.shape()) {
            (Segment::Field(name), _) => schema.known(name),
            (Segment::Index(_), Shape::List { items, .. }) => Some(items),
            (Segment::Index(_), _) => None,
        };
        let Some(below) = below else { return false };
        schema = below;
    }
    schema.default().is_none() && !matches!(schema.shape(), Shape::Any)
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

/// Does Git's empty value ask the API server to choose, in a field that it chooses for each object (`clusterIP` of a
/// Service)? Then any value in the cluster is its choice, or one that Git leaves open.
pub(in crate::drift) fn is_left_to_server(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let is_empty = difference.desired.is_some_and(|value| is_zero(value) && !value.is_null());
    let is_chosen =
        matches!(last_field(&difference.path), Some("clusterIP" | "nodePort" | "healthCheckNodePort"));
    difference.change == Change::Value
        && is_empty
        && is_chosen
        && case.is_built_in()
        && case.desired.kind() == "Service"
}

/// The same, where the API server was not asked.
pub(in crate::drift) fn left_to_server(difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::PhantomDefault,
        difference.desired_path.clone(),
        false,
        "Git leaves the value empty, so the API server chooses one, and keeps it",
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
