//! What the API server would make of manifests: a dry run of each.

use std::sync::Arc;

use plumb_api::Status;
use plumb_core::normalize::is_secret;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_crd::Application;
use plumb_crd::application::ResourceStatus;
use plumb_kube::{ApplyOptions, ClusterClient};
use serde_json::{Value, json};

use super::mask::masks_for;
use super::resource::{acting_client_of, without_managed_fields};
use crate::backend::of_api;
use crate::call::{Answer, Call};

/// Most objects of one request.
const MOST: usize = 2_000;

/// What masks show instead of a value that is not the one of the cluster.
const DIFFERENT: &str = "++++++++++++";

/// One object of the request.
struct Pair {
    key: ObjectKey,
    target: Option<Manifest>,
    /// True if it is an object of the app.
    is_managed: bool,
}

/// Compares the objects of an app with what their manifests would make of them.
pub(super) async fn diff(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    let pairs = pairs(&call, &typed)?;
    let leader = call.leader()?;
    let (client, runtime) = acting_client_of(&call, app)?;
    let mut items = Vec::new();
    let mut is_modified = false;
    for Pair { key, target, is_managed } in pairs {
        // What the cluster has counts, not what the caller says that it has.
        let live = leader.live(&typed, &key, false).await.map_err(Status::unavailable)?;
        if live.is_some() && !is_managed {
            // Whoever may see one app of a project may not see the objects of the others.
            return Err(Status::denied());
        }
        let kinds = target.iter().chain(&live).map(Manifest::gvk).collect();
        let masks = masks_for(&call, &typed, kinds, &[]).await?;
        let kept = live.clone();
        let live = live.map(Manifest::into_value);
        let client = client.clone();
        let marked = target.as_ref().map(marked).unwrap_or_default();
        let predicted = match target {
            None => None,
            Some(target) => {
                let gvk = target.gvk();
                let target = without_guesses(target, live.as_ref());
                let is_new = live.is_none();
                let tried = target.clone();
                let run = runtime.spawn(async move { dry_run(&client, &tried, is_new).await });
                let run = run.await.map_err(|_| Status::unavailable("the request was aborted"))?;
                match run {
                    Ok(run) => Some(match &kept {
                        Some(live) => leader.without_ignored(&typed, &key, run, live).into_value(),
                        None => run.into_value(),
                    }),
                    // Its values are masked, so the API server may refuse it, and its error may quote them.
                    Err(_) if key.group.is_empty() && key.kind == "Secret" => Some(target.into_value()),
                    Err(status) if masks.covers(&gvk) => {
                        return Err(Status::new(status.code, format!("cannot try the {}", gvk.kind)));
                    }
                    Err(status) => return Err(status),
                }
            }
        };
        // The manifests come from the caller: an answer that tells whether a hidden value is the same would let the caller
        // guess it.
        let hidden = |object: Option<Value>| object.map(|object| masks.hide(without_managed_fields(object)));
        let predicted = hidden(predicted).map(|predicted| with_marks(predicted, &marked));
        let live = hidden(live);
        let differs = live.as_ref().map(comparable) != predicted.as_ref().map(comparable);
        is_modified |= differs;
        let shown =
            |object: &Option<Value>| object.as_ref().map_or_else(|| "null".to_owned(), Value::to_string);
        items.push(json!({
            "group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name,
            "targetState": shown(&predicted), "liveState": shown(&live), "modified": differs,
        }));
    }
    Ok(Answer::One(json!({"items": items, "modified": is_modified})))
}

/// The pairs of the request. An object must be one of the app; a manifest must be of its object, and permitted.
fn pairs(call: &Call, app: &Application) -> Result<Vec<Pair>, Status> {
    let live = call.request.get("liveResources").and_then(Value::as_array).cloned().unwrap_or_default();
    let targets = call.texts("targetManifests");
    if live.len().max(targets.len()) > MOST {
        return Err(Status::invalid("too many objects in one request"));
    }
    let managed: Vec<ObjectKey> = app.status.resources.iter().map(ResourceStatus::key).collect();
    let mut pairs = Vec::new();
    for index in 0..live.len().max(targets.len()) {
        let target = targets.get(index).filter(|text| !text.is_empty() && *text != "null");
        let target = target.map(|text| read(text)).transpose()?;
        let key = meant(index, live.get(index), target.as_ref(), &managed)?;
        if let Some(why) = target.as_ref().and_then(|_| call.leader().ok()?.denies(app, &key)) {
            return Err(Status::new(plumb_api::Code::PermissionDenied, why));
        }
        let is_managed = managed.contains(&key);
        pairs.push(Pair { key, target, is_managed });
    }
    Ok(pairs)
}

/// The object that an entry of the request is about. Clients name it also if they know no live state of it: then it may be a
/// new one, which need not be one of the app's. `diff` refuses it if it exists.
fn meant(
    index: usize,
    given: Option<&Value>,
    target: Option<&Manifest>,
    managed: &[ObjectKey],
) -> Result<ObjectKey, Status> {
    let given = given.filter(|given| !given["name"].as_str().unwrap_or_default().is_empty());
    let is_live =
        given.is_some_and(|given| !matches!(given["liveState"].as_str().unwrap_or_default(), "" | "null"));
    match (given.map(key_of), target.and_then(Manifest::key)) {
        (Some(given), target) if (is_live || target.is_none()) && !managed.contains(&given) => {
            Err(Status::denied())
        }
        (Some(given), Some(target)) if target != given => {
            Err(Status::invalid(format!("the manifest at {index} is not of {given}")))
        }
        (Some(key), _) | (None, Some(key)) => Ok(key),
        (None, None) => Err(Status::invalid(format!("entry {index} has neither object nor manifest"))),
    }
}

fn read(text: &str) -> Result<Manifest, Status> {
    let value = serde_json::from_str(text)
        .map_err(|error| Status::invalid(format!("cannot read a manifest: {error}")))?;
    Manifest::new(value).map_err(|error| Status::invalid(format!("cannot read a manifest: {error}")))
}

/// A Secret with the values of the cluster in place of those of the caller: an immutable Secret is refused if a value
/// differs, which would tell whether a guess is right.
fn without_guesses(target: Manifest, live: Option<&Value>) -> Manifest {
    let known = live.and_then(|live| live.get("data")?.as_object()).filter(|_| is_secret(&target));
    let Some(known) = known.cloned() else { return target };
    let mut value = target.clone().into_value();
    for field in ["data", "stringData"] {
        if let Some(map) = value.get_mut(field).and_then(Value::as_object_mut) {
            map.retain(|key, _| !known.contains_key(key));
        }
    }
    if !value["data"].is_object() {
        value["data"] = json!({});
    }
    let sent = target.value();
    let has =
        |key: &String| ["data", "stringData"].iter().any(|field| sent[field].get(key.as_str()).is_some());
    for (key, text) in known.iter().filter(|(key, _)| has(key)) {
        value["data"][key.as_str()] = text.clone();
    }
    Manifest::new(value).unwrap_or(target)
}

/// The keys of a Secret that the caller sends with the mark for another value than the cluster's. The server gave this mark
/// out, with the managed resources, so it tells the caller nothing new.
fn marked(target: &Manifest) -> Vec<String> {
    let fields = ["data", "stringData"].into_iter().filter(|_| is_secret(target));
    let values = fields.filter_map(|field| target.value().get(field)?.as_object()).flatten();
    values.filter(|(_, value)| **value == DIFFERENT).map(|(key, _)| key.clone()).collect()
}

/// A Secret with these values shown as different.
fn with_marks(mut predicted: Value, marked: &[String]) -> Value {
    for key in marked {
        predicted["data"][key.as_str()] = json!(DIFFERENT);
    }
    predicted
}

fn key_of(given: &Value) -> ObjectKey {
    let text = |field: &str| given[field].as_str().unwrap_or_default().to_owned();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    ObjectKey::new(text("group"), text("kind"), namespace, text("name"))
}

async fn dry_run(client: &ClusterClient, target: &Manifest, is_new: bool) -> Result<Manifest, Status> {
    let tried = if is_new {
        client.dry_run_create(target, FIELD_MANAGER).await
    } else {
        client.dry_run_apply(target, &ApplyOptions::default()).await
    };
    tried.map(|applied| applied.manifest).map_err(|error| of_api(&error))
}

/// An object without what changes with each write.
fn comparable(object: &Value) -> Value {
    let mut object = without_managed_fields(object.clone());
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use plumb_api::Code;

    use super::*;

    #[test]
    fn what_each_write_changes_is_no_difference() {
        let object = |version: &str, size: u32| json!({"metadata": {"name": "a", "resourceVersion": version, "managedFields": []}, "size": size});
        assert_eq!(comparable(&object("1", 3)), comparable(&object("2", 3)));
        assert_ne!(comparable(&object("1", 3)), comparable(&object("1", 4)));
    }

    #[test]
    fn a_new_object_may_be_named_without_a_live_state() {
        let manifest = |name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}});
            Manifest::new(object).unwrap()
        };
        let given = |name: &str, live: &str| json!({"group": "", "kind": "ConfigMap", "namespace": "x", "name": name, "liveState": live});
        let managed = [manifest("own").key().unwrap()];
        let check = |given: Option<Value>, target: Option<Manifest>| {
            let found = meant(0, given.as_ref(), target.as_ref(), &managed);
            found.map(|key| key.name.clone()).map_err(|status| status.code)
        };
        assert_eq!(check(Some(given("new", "")), Some(manifest("new"))), Ok("new".to_owned()));
        assert_eq!(check(Some(given("new", "null")), Some(manifest("new"))), Ok("new".to_owned()));
        assert_eq!(check(Some(given("own", "{}")), None), Ok("own".to_owned()));
        assert_eq!(check(None, Some(manifest("new"))), Ok("new".to_owned()));
        assert_eq!(check(Some(given("other", "{}")), None), Err(Code::PermissionDenied));
        assert_eq!(check(Some(given("own", "{}")), Some(manifest("new"))), Err(Code::InvalidArgument));
        assert_eq!(check(Some(given("other", "")), None), Err(Code::PermissionDenied), "does it exist?");
        assert_eq!(check(None, None), Err(Code::InvalidArgument));
    }

    /// Values of Secrets are never shown, also not as predicted ones (CVE-2026-45737).
    #[test]
    fn a_value_that_was_shown_as_different_stays_different() {
        let secret = |kind: &str, value: &str| {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"},
                "data": {"password": value, "same": "++++++++"}});
            Manifest::new(object).unwrap()
        };
        assert_eq!(marked(&secret("Secret", DIFFERENT)), ["password"]);
        assert_eq!(marked(&secret("Secret", "++++++++")), Vec::<String>::new());
        assert_eq!(marked(&secret("ConfigMap", DIFFERENT)), Vec::<String>::new());
        let shown = with_marks(json!({"data": {"password": "++++++++"}}), &["password".to_owned()]);
        assert_eq!(shown["data"]["password"], DIFFERENT);
    }

    #[test]
    fn a_guess_of_a_secret_value_is_not_sent() {
        let secret = |fields: Value| {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            Manifest::new(object).unwrap()
        };
        let live = secret(json!({"data": {"password": "cmlnaHQ=", "other": "eA=="}})).into_value();
        for guess in ["cmlnaHQ=", "d3Jvbmc="] {
            let sent =
                without_guesses(secret(json!({"data": {"password": guess, "new": "bg=="}})), Some(&live));
            assert_eq!(sent.value()["data"], json!({"password": "cmlnaHQ=", "new": "bg=="}));
        }
        let sent = without_guesses(secret(json!({"stringData": {"password": "wrong"}})), Some(&live));
        assert_eq!(
            (&sent.value()["data"], &sent.value()["stringData"]),
            (&json!({"password": "cmlnaHQ="}), &json!({}))
        );
        let fresh = secret(json!({"data": {"password": "d3Jvbmc="}}));
        assert_eq!(without_guesses(fresh.clone(), None), fresh);
    }
}
