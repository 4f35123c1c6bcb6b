//! The actions of live objects: run by the server, or here with the kubeconfig.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Patch, PatchOptions, Target, WritePermit};
use plumb_lua::{Impact, Limits, Scripts, Write};
use serde_json::{Value, json};

use crate::context::{Context, FIELD_MANAGER, change, create, gate, key_of};
use crate::error::CommandError;
use crate::kinds;
use crate::remote::{Api, query};

/// The actions of one Application's objects.
pub(super) enum Actions {
    /// The server has the scripts and runs them.
    Server {
        api: Api,
        /// The path of the Application's objects, and the namespace of the Application.
        path: String,
        namespace: String,
    },
    /// The scripts run here.
    Here(Scripts),
}

/// One action.
pub(super) struct Action {
    pub(super) name: String,
    pub(super) disabled: bool,
}

impl Actions {
    pub(super) async fn of(
        context: &Context,
        home: &ClusterClient,
        application: &Application,
    ) -> Result<Self, CommandError> {
        let Some(door) = context.door() else { return scripts(context, home).await.map(Self::Here) };
        let path =
            format!("/api/v1/applications/{}/resource/actions", query::part(&application.metadata.name));
        let namespace = application.metadata.namespace.clone();
        Ok(Self::Server { api: door.api().clone(), path, namespace })
    }

    /// The actions of an object.
    pub(super) async fn list(&self, object: &Manifest) -> Result<Vec<Action>, CommandError> {
        match self {
            Self::Here(scripts) => {
                let name = object.name().unwrap_or_default();
                let listed = scripts.list_actions(object).map_err(|error| {
                    CommandError::because(format!("list the actions of {} {name}", object.kind()), error)
                })?;
                let action =
                    |action: plumb_lua::Action| Action { name: action.name, disabled: action.disabled };
                Ok(listed.into_iter().map(action).collect())
            }
            Self::Server { api, path, namespace } => {
                let fields = identity(object, namespace);
                let answer = api.get(&query::with(path, &fields)).await?;
                let action = |action: &Value| {
                    let name = action["name"].as_str()?.to_owned();
                    Some(Action { name, disabled: action["disabled"].as_bool().unwrap_or_default() })
                };
                Ok(answer["actions"].as_array().into_iter().flatten().filter_map(action).collect())
            }
        }
    }

    /// Runs an action.
    pub(super) async fn run(
        &self,
        client: &ClusterClient,
        object: &Manifest,
        action: &str,
        params: &BTreeMap<String, String>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Here(scripts) => {
                let name = object.name().unwrap_or_default();
                let impacts =
                    scripts.run_action(object, action, params, Timestamp::now()).map_err(|error| {
                        CommandError::because(format!("run {action} on {} {name}", object.kind()), error)
                    })?;
                for impact in &impacts {
                    send(client, object, impact).await?;
                }
                Ok(())
            }
            Self::Server { api, path, namespace } => {
                let params: Vec<Value> =
                    params.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                let mut request = json!({"action": action, "resourceActionParameters": params});
                for (field, value) in identity(object, namespace) {
                    request[field] = json!(value);
                }
                api.call(http::Method::POST, &format!("{path}/v2"), Some(&request)).await.map(drop)
            }
        }
    }
}

/// An object as the API names it.
fn identity<'o>(object: &'o Manifest, app_namespace: &'o str) -> [(&'static str, &'o str); 6] {
    let version = object.api_version().rsplit_once('/').map_or(object.api_version(), |(_, version)| version);
    [
        ("appNamespace", app_namespace),
        ("namespace", object.namespace().unwrap_or_default()),
        ("resourceName", object.name().unwrap_or_default()),
        ("group", object.group()),
        ("version", version),
        ("kind", object.kind()),
    ]
}

/// The built-in actions and those of the settings.
async fn scripts(context: &Context, client: &ClusterClient) -> Result<Scripts, CommandError> {
    let settings = client
        .get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cm")
        .await
        .map_err(|error| CommandError::api("read the settings in argocd-cm", error))?;
    let data = settings.as_ref().and_then(|settings| settings.value().get("data")?.as_object());
    let data: BTreeMap<String, String> = data
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    let (scripts, problems) = Scripts::parse(&data, Limits::default());
    for problem in problems {
        context.out.note(&format!("warning: argocd-cm: {problem}"));
    }
    Ok(scripts)
}

/// Writes one change of an action.
async fn send(client: &ClusterClient, live: &Manifest, impact: &Impact) -> Result<(), CommandError> {
    match impact.write(live) {
        None => Ok(()),
        Some(Write::Create(object)) => {
            let object = Manifest::new(object)
                .map_err(|error| CommandError::because("read the object that the action creates", error))?;
            create(client, &object).await.map(drop)
        }
        Some(Write::Patch { body, status }) => {
            let target = Target::of(live).ok_or_else(|| CommandError::new("the object has no name"))?;
            if let Some(body) = body {
                change(client, &target, &Patch::Merge(body)).await?;
            }
            if let Some(status) = status {
                send_status(client, &target, status).await?;
            }
            Ok(())
        }
    }
}

/// Writes the status: to the status subresource, or to the object if the kind has none.
async fn send_status(client: &ClusterClient, target: &Target, status: Value) -> Result<(), CommandError> {
    let key = key_of(target);
    let permit = WritePermit::requested_by_user(key.clone());
    let options = PatchOptions {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        subresource: Some("status".to_owned()),
    };
    let patch = Patch::Merge(status);
    match gate(client).patch(&permit, target, &patch, &options).await {
        Ok(_) => Ok(()),
        Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {
            change(client, target, &patch).await.map(drop)
        }
        Err(error) => Err(CommandError::write(format!("change the status of {key}"), error)),
    }
}
