//! Projects and the tokens of their roles.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_core::rbac::ProjectRoles;
use plumb_crd::AppProject;
use plumb_crd::settings::{ConfigData, Settings};
use serde_json::{Value, json};

use super::project_check::validate;
use crate::app_feed::without_kind;
use crate::backend::{Known, of_api};
use crate::call::{Answer, Call};
use crate::random;
use crate::role_tokens::tokens_of;

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

/// A project without its status, which lists tokens.
pub(super) fn for_links(call: &Call, name: &str) -> Result<Value, Status> {
    let mut project = shown(&*find(call, name)?);
    if let Some(fields) = project.as_object_mut() {
        fields.remove("status");
    }
    Ok(project)
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
        "project": shown(&project), "globalProjects": global_projects(&call, &project),
        "repositories": repositories, "clusters": clusters,
    })))
}

pub(super) async fn globals(call: Arc<Call>) -> Result<Answer, Status> {
    let project = find(&call, call.text("name"))?;
    Ok(Answer::One(json!({"items": global_projects(&call, &project)})))
}

/// The global projects whose rules a project gets. They are part of what it permits, so whoever may see the project sees
/// these rules, but not the roles and tokens.
fn global_projects(call: &Call, project: &Manifest) -> Vec<Value> {
    let (settings, _) = Settings::read(&call.shared.state.config(), &ConfigData::new());
    let labels = project.value().pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let name = project.name().unwrap_or_default();
    let global = settings.global_projects.iter().filter(|global| global.concerns(name, &labels));
    let global = global.filter_map(|global| call.shared.state.project(&global.project));
    let without_roles = |project: Arc<Manifest>| {
        let mut shown = shown(&project);
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("status");
        }
        if let Some(fields) = shown.get_mut("spec").and_then(Value::as_object_mut) {
            fields.remove("roles");
        }
        shown
    };
    global.map(without_roles).collect()
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

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let name = sent.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut new = sent.clone();
    (new["spec"], _) = with_stored_tokens(&Value::Null, new["spec"].take());
    match call.shared.backend.create(new).await {
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
            write(&call, &name, |stored| {
                let (spec, _) = with_stored_tokens(stored, sent["spec"].clone());
                Ok(json!([{"op": "replace", "path": "/spec", "value": spec}]))
            })
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
    refuse_losses(&call, &stored, &sent)?;
    let version = call.request.pointer("/project/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.filter(|version| !version.is_empty()).map(str::to_owned);
    write(&call, &name, |stored| {
        // A client that changed an older state would undo what others have written since.
        let now = stored.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        if version.is_some() && version.as_deref() != now {
            return Err(Status::new(Code::Aborted, changed_meanwhile(&name)));
        }
        Ok(update_patch(stored, &sent))
    })
    .await
}

fn changed_meanwhile(name: &str) -> String {
    format!(
        "Operation cannot be fulfilled on appprojects.argoproj.io \"{name}\": the object has been modified; please apply \
         your changes to the latest version and try again"
    )
}

/// The change from the stored project to the sent one: the spec, labels, annotations and finalizers.
fn update_patch(stored: &Value, sent: &Value) -> Value {
    let (spec, by_role) = with_stored_tokens(stored, sent["spec"].clone());
    let mut patch = vec![json!({"op": "replace", "path": "/spec", "value": spec})];
    if let Some(by_role) = by_role {
        patch.push(json!({"op": "add", "path": "/status/jwtTokensByRole", "value": by_role}));
    }
    for field in ["labels", "annotations", "finalizers"] {
        let place = format!("/metadata/{field}");
        match (stored.pointer(&place), sent.pointer(&place)) {
            (_, Some(wanted)) => patch.push(json!({"op": "add", "path": place, "value": wanted})),
            (Some(_), None) => patch.push(json!({"op": "remove", "path": place})),
            (None, None) => {}
        }
    }
    Value::Array(patch)
}

/// Refuses a change that takes the source or the destination away from Applications of the project.
fn refuse_losses(call: &Call, stored: &Manifest, sent: &Value) -> Result<(), Status> {
    let read = |value: &Value| {
        AppProject::from_json(value)
            .map_err(|error| Status::invalid(format!("the project cannot be read: {error}")))
    };
    // A stored project that cannot be read permits nothing, so nothing is lost.
    let Ok(before) = read(stored.value()) else { return Ok(()) };
    let leader = match call.leader() {
        // A user with credentials of the cluster has no engine at hand, and could change the project without asking it.
        Err(_) if call.identity.as_ref().is_some_and(|identity| identity.has_cluster) => return Ok(()),
        leader => leader?,
    };
    let (sources, destinations) = leader.lost_by(&before, &read(sent)?);
    let lost = [(sources, "source"), (destinations, "destination")].into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> =
        lost.map(|(n, what)| format!("{n} applications {what} became invalid")).collect();
    if parts.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(format!("as a result of project update {}", parts.join(" and "))))
}

/// A spec with the tokens that are stored, and the tokens of the roles that it has, if that is a change. What a client sends
/// as tokens does not count: it could bring back a token that was deleted.
fn with_stored_tokens(stored: &Value, mut spec: Value) -> (Value, Option<Value>) {
    let by_role = stored.pointer("/status/jwtTokensByRole").and_then(Value::as_object);
    let mut names = Vec::new();
    for role in spec.get_mut("roles").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = role.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tokens = tokens_of(stored, &name);
        if let Some(fields) = role.as_object_mut() {
            if tokens.is_empty() {
                fields.remove("jwtTokens");
            } else {
                fields.insert("jwtTokens".to_owned(), Value::Array(tokens));
            }
        }
        names.push(name);
    }
    let kept = by_role.map(|by_role| {
        let kept = by_role.iter().filter(|(name, _)| names.contains(name));
        kept.map(|(name, tokens)| (name.clone(), tokens.clone())).collect::<serde_json::Map<_, _>>()
    });
    (spec, kept.filter(|kept| Some(kept) != by_role).map(Value::Object))
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
        call.note_written(stored.value());
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
    let own = call.identity.as_ref().map(|identity| call.shared.state.groups(&identity.access));
    if own.unwrap_or_default().iter().any(|group| groups.contains(&json!(group))) {
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
        let project = stored.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        return Err(Status::not_found(format!("project '{project}' does not have role '{role}'")));
    }
    Ok(tokens_of(stored, role))
}

/// The tokens of a role in the status and in the spec, as Argo CD keeps both.
fn token_patch(stored: &Value, role: &str, tokens: &[Value]) -> Value {
    let mut by_role = stored.pointer("/status/jwtTokensByRole").cloned().unwrap_or_else(|| json!({}));
    // Clients take an empty list for one that is there.
    by_role[role] = if tokens.is_empty() { json!({}) } else { json!({"items": tokens}) };
    let mut roles = stored.pointer("/spec/roles").cloned().unwrap_or_default();
    for known in roles.as_array_mut().into_iter().flatten() {
        if known.get("name").and_then(Value::as_str) == Some(role) {
            known["jwtTokens"] = json!(tokens);
            if let Some(fields) = known.as_object_mut().filter(|_| tokens.is_empty()) {
                fields.remove("jwtTokens");
            }
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
                call.note_written(written.value());
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
    fn a_role_without_tokens_has_no_list_of_them() {
        let token = json!({"iat": 1, "id": "a"});
        let stored = json!({
            "spec": {"roles": [{"name": "dev", "jwtTokens": [token]}]},
            "status": {"jwtTokensByRole": {"dev": {"items": [token]}}},
        });
        let patch = token_patch(&stored, "dev", &[]);
        assert_eq!(patch[0]["value"], json!([{"name": "dev"}]));
        assert_eq!(patch[1]["value"], json!({"dev": {}}));
        let patch = token_patch(&stored, "dev", &[token.clone(), json!({"iat": 2, "id": "b"})]);
        assert_eq!(patch[0]["value"][0]["jwtTokens"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn an_update_sets_and_removes_metadata() {
        let stored = json!({"spec": {}, "metadata": {"labels": {"a": "b"}, "finalizers": ["f"], "uid": "u"}});
        let sent = json!({"spec": {"description": "x"}, "metadata": {"annotations": {"c": "d"}, "finalizers": ["g"]}});
        let expected = json!([
            {"op": "replace", "path": "/spec", "value": {"description": "x"}},
            {"op": "remove", "path": "/metadata/labels"},
            {"op": "add", "path": "/metadata/annotations", "value": {"c": "d"}},
            {"op": "add", "path": "/metadata/finalizers", "value": ["g"]},
        ]);
        assert_eq!(update_patch(&stored, &sent), expected);
    }

    #[test]
    fn tokens_of_an_update_are_those_that_are_stored() {
        let (kept, other) = (json!({"iat": 1, "id": "kept"}), json!({"iat": 2, "id": "other"}));
        let stored = json!({
            "spec": {"roles": [{"name": "dev"}, {"name": "old", "jwtTokens": [other]}, {"name": "gone"}]},
            "status": {"jwtTokensByRole": {"dev": {"items": [kept]}, "gone": {"items": [other]}}},
        });
        let sent = json!({"roles": [
            {"name": "dev", "jwtTokens": [{"iat": 9, "id": "deleted"}]}, {"name": "old"}, {"name": "new"},
        ]});
        let (spec, by_role) = with_stored_tokens(&stored, sent);
        let expected = json!([
            {"name": "dev", "jwtTokens": [kept]}, {"name": "old", "jwtTokens": [other]}, {"name": "new"},
        ]);
        assert_eq!(spec["roles"], expected);
        assert_eq!(by_role, Some(json!({"dev": {"items": [kept]}})));
        // Whoever creates a project again does not bring back the tokens that it had.
        let sent = json!({"roles": [{"name": "dev", "jwtTokens": [{"iat": 9, "id": "deleted"}]}]});
        assert_eq!(with_stored_tokens(&Value::Null, sent), (json!({"roles": [{"name": "dev"}]}), None));
    }
}
