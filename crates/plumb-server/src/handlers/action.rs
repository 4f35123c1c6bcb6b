//! Actions on objects: restart, promote, and those of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Fence, Gate, Patch, PatchOptions, Target, WritePermit};
use plumb_lua::{Action, Impact, Limits, Scripts, Write};
use serde_json::{Value, json};

use super::resource::{acting_client_of, in_tree, live};
use crate::backend::{FIELD_MANAGER, of_api, of_write};
use crate::call::{Answer, Call, FoundApp};

/// The object of the request. The kind Application and the name of the app mean the app itself.
async fn subject(call: &Call, app: &FoundApp) -> Result<Manifest, Status> {
    let is_app = call.text("group") == GroupVersionKind::from_api_version(Application::API_VERSION, "").group
        && call.text("kind") == Application::KIND
        && call.text("resourceName") == app.name
        && (call.text("namespace").is_empty() || call.text("namespace") == app.namespace);
    if is_app {
        let mut value = app.value.clone();
        value["apiVersion"] = json!(Application::API_VERSION);
        value["kind"] = json!(Application::KIND);
        return Manifest::new(value).map_err(|error| Status::invalid(error.to_string()));
    }
    let (key, _) = in_tree(call, app)?;
    live(call, app, &key).await
}

/// Runs scripts. They take processor time, so this leaves the thread to others.
async fn with_scripts<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Scripts) -> Result<T, plumb_lua::Error> + Send + 'static,
) -> Result<T, Status> {
    let config = call.shared.state.config();
    let work = tokio::task::spawn_blocking(move || {
        let (scripts, _) = Scripts::parse(&config, Limits::default());
        work(&scripts)
            .map_err(|error| Status::precondition(format!("the script of the action failed: {error}")))
    });
    work.await.unwrap_or_else(|_| Err(Status::new(Code::Internal, "the action was aborted")))
}

fn shown(action: &Action) -> Value {
    let params: Vec<Value> = action.params.iter().map(|param| json!({"name": param.name})).collect();
    json!({
        "name": action.name, "params": params, "disabled": action.disabled,
        "iconClass": action.icon_class.clone().unwrap_or_default(),
        "displayName": action.display_name.clone().unwrap_or_default(),
    })
}

/// The actions of an object.
pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let object = subject(&call, call.app()?).await?;
    let actions = with_scripts(&call, move |scripts| scripts.list_actions(&object)).await?;
    Ok(Answer::One(json!({"actions": actions.iter().map(shown).collect::<Vec<_>>()})))
}

/// Runs an action. What it changes or creates must be permitted by the project.
pub(super) async fn run(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let object = subject(&call, app).await?;
    let name = call.text("action").to_owned();
    let given = call.request.get("resourceActionParameters").and_then(Value::as_array).into_iter().flatten();
    let params: BTreeMap<String, String> = given
        .filter_map(|param| {
            Some((param.get("name")?.as_str()?.to_owned(), param.get("value")?.as_str()?.to_owned()))
        })
        .collect();
    let (subject, action) = (object.clone(), name.clone());
    let impacts = with_scripts(&call, move |scripts| {
        let listed = scripts.list_actions(&subject)?;
        let known = listed.iter().find(|known| known.name == action);
        match known {
            None => Ok(Err(Status::invalid(format!("action {action} is not known for this object")))),
            Some(known) if known.disabled => {
                Ok(Err(Status::precondition(format!("action {action} is disabled in the current state"))))
            }
            Some(_) => scripts.run_action(&subject, &action, &params, jiff::Timestamp::now()).map(Ok),
        }
    })
    .await??;
    if impacts.is_empty() {
        return Err(Status::precondition(format!("action {name} did not return an object")));
    }
    let typed = app.typed()?;
    for impact in &impacts {
        check(&call, &typed, impact)?;
    }
    let (client, runtime) = acting_client_of(&call, app)?;
    let written = runtime.spawn(async move {
        let gate = Gate::new(client.clone(), Fence::of_command(), None);
        for impact in &impacts {
            carry_out(&client, &gate, &object, impact).await?;
        }
        Ok(())
    });
    written.await.map_err(|_| Status::unavailable("the request was aborted"))??;
    Ok(Answer::One(json!({})))
}

/// A script of the settings may return any object; only what the project permits is written.
fn check(call: &Call, app: &Application, impact: &Impact) -> Result<(), Status> {
    let object =
        Manifest::new(impact.object.clone()).map_err(|error| Status::precondition(error.to_string()))?;
    let key: ObjectKey =
        object.key().ok_or_else(|| Status::precondition("the action returned an object without a name"))?;
    match call.leader()?.denies(app, &key) {
        Some(why) => Err(Status::new(Code::PermissionDenied, why)),
        None => Ok(()),
    }
}

async fn carry_out(
    client: &ClusterClient,
    gate: &Gate,
    live: &Manifest,
    impact: &Impact,
) -> Result<(), Status> {
    match impact.write(live) {
        None => Ok(()),
        Some(Write::Create(object)) => {
            let object = Manifest::new(object).map_err(|error| Status::precondition(error.to_string()))?;
            let key = object.key().ok_or_else(|| Status::precondition("the new object has no name"))?;
            client.dry_run_create(&object, FIELD_MANAGER).await.map_err(|error| of_api(&error))?;
            let created = gate.create(&WritePermit::requested_by_user(key), &object, FIELD_MANAGER).await;
            created.map(drop).map_err(|error| of_write(&error))
        }
        Some(Write::Patch { body, status }) => {
            let target = Target::of(live).ok_or_else(|| Status::precondition("the object has no name"))?;
            let key = live.key().ok_or_else(|| Status::precondition("the object has no name"))?;
            let permit = WritePermit::requested_by_user(key);
            for (patch, place) in [(body, None), (status, Some("status"))] {
                let Some(patch) = patch.map(Patch::Merge) else { continue };
                let options = |place: Option<&str>| PatchOptions {
                    field_manager: Some(FIELD_MANAGER.to_owned()),
                    subresource: place.map(str::to_owned),
                };
                let written = match gate.patch(&permit, &target, &patch, &options(place)).await {
                    // A kind without the subresource has its status in the object.
                    Err(error)
                        if place.is_some() && error.api().is_some_and(plumb_kube::ApiError::is_not_found) =>
                    {
                        gate.patch(&permit, &target, &patch, &options(None)).await
                    }
                    written => written,
                };
                written.map_err(|error| of_write(&error))?;
            }
            Ok(())
        }
    }
}
