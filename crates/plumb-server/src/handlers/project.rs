//! Projects and the tokens of their roles.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_core::rbac::ProjectRoles;
use plumb_crd::AppProject;
use serde_json::{Value, json};

use crate::app_feed::without_kind;
use crate::backend::{Known, of_api};
use crate::call::{Answer, Call};
use crate::random;

/// How often a change is tried again after a conflict.
const ATTEMPTS: usize = 5;

fn shown(project: &Manifest) -> Value {
    let mut value = without_kind(project.value().clone());
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}

/// The project with this name. Its permission was checked before.
fn find(call: &Call, name: &str) -> Result<Arc<Manifest>, Status> {
    let missing = || Status::not_found(format!("appprojects.argoproj.io \"{name}\" not found"));
    call.shared.state.project(name).ok_or_else(missing)
}

/// The projects that the caller may see.
pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let projects = call.shared.state.projects();
    let seen =
        projects.iter().filter(|project| call.allows("projects", "get", project.name().unwrap_or_default()));
    let items: Vec<Value> = seen.map(|project| shown(project)).collect();
    Ok(Answer::One(json!({"metadata": {}, "items": items})))
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let project = find(&call, call.text("name"))?;
    Ok(Answer::One(shown(&project)))
}

/// A project with what belongs to it. Credentials are never part of it, and clusters and repositories only if the caller
/// may see them.
pub(super) async fn detailed(call: Arc<Call>) -> Result<Answer, Status> {
    let project = find(&call, call.text("name"))?;
    let name = call.text("name");
    let repositories = super::repository::of_project(&call, name).await?;
    let clusters = super::cluster::of_project(&call, name).await?;
    Ok(Answer::One(json!({
        "project": shown(&project), "globalProjects": [], "repositories": repositories, "clusters": clusters,
    })))
}

pub(super) async fn globals(call: Arc<Call>) -> Result<Answer, Status> {
    find(&call, call.text("name"))?;
    Ok(Answer::One(json!({"items": []})))
}

/// All sync windows of a project.
pub(super) async fn sync_windows(call: Arc<Call>) -> Result<Answer, Status> {
    let project = find(&call, call.text("name"))?;
    let windows = project.value().pointer("/spec/syncWindows").cloned().unwrap_or(json!([]));
    Ok(Answer::One(json!({"windows": windows})))
}

pub(super) async fn events(call: Arc<Call>) -> Result<Answer, Status> {
    let project = find(&call, call.text("name"))?;
    let events =
        call.shared.backend.client.events_of(project.uid().unwrap_or_default(), project.namespace()).await;
    Ok(super::resource::shown_events(events.map_err(|error| of_api(&error))?))
}

/// The project of the request as it would be stored.
fn sent(call: &Call) -> Result<Value, Status> {
    let sent = call.request.get("project").ok_or_else(|| Status::invalid("missing payload in request"))?;
    let part = |path: &str| sent.pointer(path).cloned().unwrap_or_default();
    let mut object = json!({
        "apiVersion": AppProject::API_VERSION, "kind": AppProject::KIND,
        "metadata": {"name": part("/metadata/name"), "namespace": call.namespace()},
        "spec": part("/spec"),
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = part(&format!("/metadata/{field}"));
        if !value.is_null() {
            object["metadata"][field] = value;
        }
    }
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
    validate(&object)?;
    Ok(object)
}

/// What Argo CD checks on write: otherwise a role could give itself rights outside of its project.
fn validate(project: &Value) -> Result<(), Status> {
    AppProject::from_json(project).map_err(|error| Status::invalid(error.to_string()))?;
    let name = project.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(Status::invalid("project name is required"));
    }
    let roles = project.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
    let mut seen = Vec::new();
    for role in roles {
        let role_name = role.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        if !role_name.chars().all(is_name)
            || !ends(role_name.chars().next())
            || !ends(role_name.chars().last())
        {
            return Err(Status::invalid(format!("invalid role name '{role_name}'")));
        }
        if seen.contains(&role_name) {
            return Err(Status::new(Code::AlreadyExists, format!("role '{role_name}' already exists")));
        }
        seen.push(role_name);
        for policy in role.get("policies").and_then(Value::as_array).into_iter().flatten() {
            validate_policy(name, role_name, policy.as_str().unwrap_or_default())?;
        }
    }
    Ok(())
}

const RESOURCES: [&str; 6] = ["applications", "applicationsets", "repositories", "clusters", "logs", "exec"];
const ACTIONS: [&str; 8] = ["get", "create", "update", "delete", "sync", "override", "rollback", "*"];

fn validate_policy(project: &str, role: &str, policy: &str) -> Result<(), Status> {
    let wrong = |why: &str| Err(Status::invalid(format!("invalid policy rule '{policy}': {why}")));
    let parts: Vec<&str> = policy.split(',').map(str::trim).collect();
    let [p, subject, resource, action, object, effect] = parts.as_slice() else {
        return wrong("must be of the form: 'p, sub, res, act, obj, eft'");
    };
    if policy.contains('\n') || *p != "p" {
        return wrong("must be one line that starts with p");
    }
    if *subject != ProjectRoles::subject(project, role) {
        return wrong(&format!("policy subject must be: 'proj:{project}:{role}'"));
    }
    if !RESOURCES.contains(resource) {
        return wrong(
            "project resource must be one of applications, applicationsets, repositories, clusters, logs, exec",
        );
    }
    let is_fine = ["action/", "update/", "delete/"].into_iter().any(|prefix| action.contains(prefix));
    if !ACTIONS.contains(action) && !is_fine {
        return wrong("invalid action");
    }
    let below = object.strip_prefix(project).and_then(|rest| rest.strip_prefix('/'));
    let is_word = |letter: char| letter.is_alphanumeric() || "*-._/".contains(letter);
    if !below.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_word)) {
        return wrong(&format!("object must be of form '{project}/*', '{project}[/<NAMESPACE>]/<APPNAME>'"));
    }
    if !["allow", "deny"].contains(effect) {
        return wrong("effect must be: 'allow' or 'deny'");
    }
    Ok(())
}

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let name = sent.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    match call.shared.backend.create(sent.clone()).await {
        Ok(created) => {
            call.shared.state.note_written(&name, &created);
            Ok(Answer::One(shown(&created)))
        }
        Err(status) if status.code == Code::AlreadyExists => {
            let stored = find(&call, &name)?;
            if stored.value().get("spec") == sent.get("spec") {
                return Ok(Answer::One(shown(&stored)));
            }
            if call.request.get("upsert") != Some(&json!(true)) {
                return Err(Status::invalid(
                    "existing project spec is different, use upsert flag to force update",
                ));
            }
            call.require("projects", "update", &name)?;
            write(&call, &name, |_| Ok(json!([{"op": "replace", "path": "/spec", "value": sent["spec"]}])))
                .await
        }
        Err(status) => Err(status),
    }
}

/// Replaces the spec. What the change adds needs rights of its own: a project must not reach what its owner may not.
pub(super) async fn update(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let name = sent.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stored = find(&call, &name)?;
    for destination in added(&stored, &sent, "destinations") {
        let server = destination.get("server").and_then(Value::as_str).unwrap_or_default();
        call.require("clusters", "update", server)?;
    }
    for repo in added(&stored, &sent, "sourceRepos") {
        call.require("repositories", "update", repo.as_str().unwrap_or_default())?;
    }
    let lists = [
        "clusterResourceWhitelist",
        "clusterResourceBlacklist",
        "namespaceResourceWhitelist",
        "namespaceResourceBlacklist",
    ];
    let part = |value: &Value, field: &str| {
        value.get("spec").and_then(|spec| spec.get(field)).cloned().unwrap_or_default()
    };
    if lists.into_iter().any(|field| part(stored.value(), field) != part(&sent, field)) {
        for destination in part(&sent, "destinations").as_array().into_iter().flatten() {
            let server = destination.get("server").and_then(Value::as_str).unwrap_or_default();
            call.require("clusters", "update", server)?;
        }
    }
    let (spec, labels) = (sent["spec"].clone(), sent["metadata"].get("labels").cloned());
    write(&call, &name, |_| {
        let mut patch = vec![json!({"op": "replace", "path": "/spec", "value": spec})];
        if let Some(labels) = &labels {
            patch.push(json!({"op": "add", "path": "/metadata/labels", "value": labels}));
        }
        Ok(Value::Array(patch))
    })
    .await
}

/// The entries of a list that are new.
fn added(stored: &Manifest, sent: &Value, field: &str) -> Vec<Value> {
    let list = |value: &Value| {
        value.get("spec").and_then(|spec| spec.get(field)?.as_array().cloned()).unwrap_or_default()
    };
    let before = list(stored.value());
    list(sent).into_iter().filter(|entry| !before.contains(entry)).collect()
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let name = call.text("name");
    if name == "default" {
        return Err(Status::invalid(format!("name '{name}' is reserved and cannot be deleted")));
    }
    find(&call, name)?;
    let apps = call.leader()?.apps();
    let users = apps.iter().filter(|app| app.head().is_some_and(|head| head.project() == name)).count();
    if users > 0 {
        return Err(Status::invalid(format!("project is referenced by {users} applications")));
    }
    let stored = call.shared.backend.get(Known::Project, call.namespace(), name).await?;
    if let Some(stored) = stored {
        call.shared.backend.delete(&stored).await?;
    }
    call.shared.state.note_deleted_project(name);
    Ok(Answer::One(json!({})))
}

/// The rights for tokens of a role: to update the project, or to be a member of a group of the role.
fn require_token_right(call: &Call, project: &str, role: &str) -> Result<(), Status> {
    if call.allows("projects", "update", project) {
        return Ok(());
    }
    let known = call.shared.state.project(project).ok_or_else(Status::denied)?;
    let roles = known.value().pointer("/spec/roles").and_then(Value::as_array);
    let found = roles
        .and_then(|roles| roles.iter().find(|known| known.get("name").and_then(Value::as_str) == Some(role)));
    let groups = found.and_then(|role| role.get("groups")?.as_array().cloned()).unwrap_or_default();
    let own = call.identity.as_ref().and_then(|identity| identity.claim("groups")?.as_array().cloned());
    if own.unwrap_or_default().iter().any(|group| groups.contains(group)) {
        Ok(())
    } else {
        Err(Status::denied())
    }
}

pub(super) async fn create_token(call: Arc<Call>) -> Result<Answer, Status> {
    let (project, role) = (call.text("project").to_owned(), call.text("role").to_owned());
    require_token_right(&call, &project, &role)?;
    let id = match call.text("id") {
        "" => random::uuid()?,
        id => id.to_owned(),
    };
    let now = jiff::Timestamp::now().as_second();
    let seconds = call.number("expiresIn").unwrap_or_default().max(0);
    let mut entry = json!({"iat": now, "id": id});
    if seconds > 0 {
        entry["exp"] = json!(now.saturating_add(seconds));
    }
    write(&call, &project, |stored| {
        let mut tokens = tokens(stored, &role)?;
        if tokens.iter().any(|token| token.get("id").and_then(Value::as_str) == Some(&id)) {
            return Err(Status::invalid(format!("Token id '{id}' has been used. ")));
        }
        tokens.push(entry.clone());
        Ok(token_patch(stored, &role, &tokens))
    })
    .await?;
    let subject = ProjectRoles::subject(&project, &role);
    Ok(Answer::One(json!({"token": call.shared.sessions.issue(&subject, &id, now, seconds)?})))
}

pub(super) async fn delete_token(call: Arc<Call>) -> Result<Answer, Status> {
    let (project, role) = (call.text("project").to_owned(), call.text("role").to_owned());
    require_token_right(&call, &project, &role)?;
    let (id, issued_at) = (call.text("id").to_owned(), call.number("iat"));
    write(&call, &project, |stored| {
        let mut tokens = tokens(stored, &role)?;
        tokens.retain(|token| {
            let has_id = !id.is_empty() && token.get("id").and_then(Value::as_str) == Some(&id);
            let has_time =
                id.is_empty() && issued_at.is_some() && token.get("iat").and_then(Value::as_i64) == issued_at;
            !(has_id || has_time)
        });
        Ok(token_patch(stored, &role, &tokens))
    })
    .await?;
    Ok(Answer::One(json!({})))
}

/// The tokens of a role, which must exist.
fn tokens(stored: &Value, role: &str) -> Result<Vec<Value>, Status> {
    let roles = stored.pointer("/spec/roles").and_then(Value::as_array);
    let exists = roles.is_some_and(|roles| {
        roles.iter().any(|known| known.get("name").and_then(Value::as_str) == Some(role))
    });
    if !exists {
        return Err(Status::not_found(format!("role '{role}' does not exist")));
    }
    let items = stored
        .get("status")
        .and_then(|status| status.get("jwtTokensByRole")?.get(role)?.get("items")?.as_array().cloned());
    Ok(items.unwrap_or_default())
}

/// The tokens of a role in the status and in the spec, as Argo CD keeps both.
fn token_patch(stored: &Value, role: &str, tokens: &[Value]) -> Value {
    let mut by_role = stored.pointer("/status/jwtTokensByRole").cloned().unwrap_or_else(|| json!({}));
    by_role[role] = json!({"items": tokens});
    let mut roles = stored.pointer("/spec/roles").cloned().unwrap_or_default();
    for known in roles.as_array_mut().into_iter().flatten() {
        if known.get("name").and_then(Value::as_str) == Some(role) {
            known["jwtTokens"] = json!(tokens);
        }
    }
    let status = if stored.get("status").is_some_and(Value::is_object) {
        json!({"op": "add", "path": "/status/jwtTokensByRole", "value": by_role})
    } else {
        json!({"op": "add", "path": "/status", "value": {"jwtTokensByRole": by_role}})
    };
    json!([{"op": "add", "path": "/spec/roles", "value": roles}, status])
}

/// Writes a change of a project on top of what is stored; again if another writer was faster.
async fn write(
    call: &Call,
    name: &str,
    patch: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    for _ in 0..ATTEMPTS {
        let stored = call.shared.backend.get(Known::Project, call.namespace(), name).await?;
        let stored = stored.ok_or_else(Status::denied)?;
        let mut operations = vec![json!({
            "op": "test", "path": "/metadata/resourceVersion", "value": stored.resource_version(),
        })];
        operations.extend(patch(stored.value())?.as_array().cloned().unwrap_or_default());
        match call
            .shared
            .backend
            .patch(Known::Project, call.namespace(), name, Value::Array(operations))
            .await
        {
            Ok(written) => {
                call.shared.state.note_written(name, &written);
                return Ok(Answer::One(shown(&written)));
            }
            Err(error) => {
                let now = call.shared.backend.get(Known::Project, call.namespace(), name).await?;
                if now.is_none_or(|now| now.resource_version() == stored.resource_version()) {
                    return Err(error);
                }
            }
        }
    }
    Err(Status::new(Code::Aborted, "the project keeps changing; try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_stays_inside_its_project() {
        let check = |policy: &str| validate_policy("team", "dev", policy).is_ok();
        assert!(check("p, proj:team:dev, applications, sync, team/*, allow"));
        assert!(check("p, proj:team:dev, applications, action/apps/Deployment/restart, team/ns/app, deny"));
        for wrong in [
            "g, proj:team:dev, role:admin",
            "p, proj:other:dev, applications, get, team/*, allow",
            "p, proj:team:dev, projects, get, team/*, allow",
            "p, proj:team:dev, applications, get, other/*, allow",
            "p, proj:team:dev, applications, get, team, allow",
            "p, proj:team:dev, applications, get, team/*, maybe",
            "p, proj:team:dev, applications, get, team/*, allow\ng, x, role:admin",
        ] {
            assert!(!check(wrong), "{wrong}");
        }
    }
}
