//! Repositories and templates of credentials.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt as _};
use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_core::project::normalize_repo_url;
use plumb_core::text::without_logins;
use plumb_crd::settings::{DECLARES_ADDRESS, Repositories, Repository, RepositoryKind, SecretData};
use serde_json::{Map, Value, json};

use super::registration::{self, fnv1a, object};
use crate::call::{Answer, Call};

/// How many repositories are tested at a time, and how long a request waits for that.
const TESTED_AT_ONCE: usize = 8;
const TESTED_WITHIN: Duration = Duration::from_secs(15);

/// A repository and its Secret.
struct Found {
    repository: Repository,
    secret: Manifest,
}

impl Found {
    fn object(&self) -> String {
        object(self.repository.project.as_deref(), &self.repository.url)
    }
}

async fn all(call: &Call, secret_type: &str) -> Result<Vec<Found>, Status> {
    let secrets = registration::list(call, secret_type).await?;
    let read = |(data, secret)| Repository::read(&data).ok().map(|repository| Found { repository, secret });
    let mut found: Vec<Found> = secrets.into_iter().filter_map(read).collect();
    found.sort_by(|one, other| {
        let key = |found: &Found| (found.repository.project.clone(), found.repository.url.clone());
        key(one).cmp(&key(other))
    });
    Ok(found)
}

/// A repository without its credentials; the user name stays.
fn shown(repository: &Repository) -> Value {
    let kind = match repository.kind {
        RepositoryKind::Git => "git",
        RepositoryKind::Helm { .. } => "helm",
        RepositoryKind::Oci => "oci",
    };
    let mut shown = json!({
        "repo": repository.url,
        "type": kind,
        "name": repository.name.clone().unwrap_or_default(),
        "project": repository.project.clone().unwrap_or_default(),
        "username": repository.credentials.username.clone().unwrap_or_default(),
        "insecure": repository.insecure,
        "insecureIgnoreHostKey": repository.insecure_ignore_host_key,
        "enableLfs": repository.enable_lfs,
        "enableOCI": repository.kind == RepositoryKind::Helm { oci: true },
        "insecureOCIForceHttp": repository.insecure_oci_force_http,
        "forceHttpBasicAuth": repository.credentials.force_basic_auth,
        "useAzureWorkloadIdentity": repository.credentials.use_azure_workload_identity,
        "noProxy": repository.no_proxy.clone().unwrap_or_default(),
        "connectionState": {"status": "Unknown", "message": "not tested"},
    });
    if let Some(proxy) = &repository.proxy {
        shown["proxy"] = json!(without_logins(proxy.expose()));
    }
    let number = |number: u64| json!(i64::try_from(number).unwrap_or_default());
    if let Some(depth) = repository.depth {
        shown["depth"] = number(depth);
    }
    if let Some(app) = &repository.credentials.github_app {
        shown["githubAppID"] = number(app.id);
        shown["githubAppInstallationID"] = number(app.installation_id.unwrap_or_default());
        shown["githubAppEnterpriseBaseUrl"] = json!(app.enterprise_base_url.clone().unwrap_or_default());
    }
    shown
}

/// Repositories as they are shown, with a mark where the credentials are those of a template.
async fn shown_all(call: &Call, found: &[Found]) -> Result<Vec<Value>, Status> {
    let templates = all(call, "repo-creds").await?.into_iter().map(|found| found.repository).collect();
    let templates = Repositories { repositories: Vec::new(), templates };
    let mut shown: Vec<Value> =
        found.iter().map(|found| with_origin(&found.repository, &templates)).collect();
    let until = tokio::time::Instant::now() + TESTED_WITHIN;
    let tests: Vec<_> = found.iter().map(|found| connection(call, found, until)).collect();
    let states: Vec<Option<Value>> = stream::iter(tests).buffered(TESTED_AT_ONCE).collect().await;
    for (shown, state) in shown.iter_mut().zip(states) {
        if let Some(state) = state {
            shown["connectionState"] = state;
        }
    }
    Ok(shown)
}

/// The state of the connection to a repository; `None` if that is not known in time.
async fn connection(call: &Call, found: &Found, until: tokio::time::Instant) -> Option<Value> {
    let secret = &found.secret;
    let key =
        format!("{}/{}", secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default());
    let is_forced = call.flag("forceRefresh") == Some(true);
    let leader = call.leader().ok()?;
    let test = leader.check_repository(found.repository.clone());
    call.shared.connections.state(&key, is_forced, until, test).await
}

fn with_origin(repository: &Repository, templates: &Repositories) -> Value {
    let mut value = shown(repository);
    if repository.credentials.is_empty()
        && let Some(template) = templates.find(&repository.url, "")
        && !template.credentials.is_empty()
    {
        value["inheritedCreds"] = json!(true);
        value["username"] = json!(template.credentials.username.clone().unwrap_or_default());
    }
    value
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let found = all(&call, "repository").await?;
    let project = call.text("appProject");
    let seen = found.into_iter().filter(|found| {
        (project.is_empty() || found.repository.project.as_deref() == Some(project))
            && call.allows("repositories", "get", &found.object())
    });
    let items = shown_all(&call, &seen.collect::<Vec<_>>()).await?;
    Ok(Answer::One(json!({"metadata": {}, "items": items})))
}

/// The repository of the request. One that does not exist and one that the caller may not use look the same.
async fn asked(call: &Call, url: &str, action: &str) -> Result<Found, Status> {
    let wanted = normalize_repo_url(url);
    let project = call.text("appProject");
    let mut found: Vec<Found> = all(call, "repository")
        .await?
        .into_iter()
        .filter(|found| normalize_repo_url(&found.repository.url) == wanted)
        .filter(|found| project.is_empty() || found.repository.project.as_deref() == Some(project))
        .filter(|found| call.allows("repositories", action, &found.object()))
        .collect();
    if found.len() > 1 {
        return Err(Status::invalid("several projects have registered this repository; name one"));
    }
    found.pop().ok_or_else(|| call.refused("repositories", action))
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let found = asked(&call, call.text("repo"), "get").await?;
    let mut shown = shown_all(&call, &[found]).await?;
    shown.pop().map(Answer::One).ok_or_else(|| call.refused("repositories", "get"))
}

fn sent<'c>(call: &'c Call, field: &str) -> Result<&'c Value, Status> {
    call.request
        .get(field)
        .filter(|sent| sent.is_object())
        .ok_or_else(|| Status::invalid(format!("{field} is required")))
}

/// The values of a repository's Secret: the keys of Secrets are the names of the fields, but for the first. A field with
/// the name of that key would replace the address whose permission was checked.
fn values(sent: &Value, url_field: &str) -> Map<String, Value> {
    let mut values = Map::new();
    for (field, value) in sent.as_object().into_iter().flatten() {
        let key = match field.as_str() {
            field if field == url_field => "url",
            "url" | "connectionState" => continue,
            field => field,
        };
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(true) => "true".to_owned(),
            Value::Number(number) if number.as_i64() != Some(0) => number.to_string(),
            _ => continue,
        };
        values.insert(key.to_owned(), json!(text));
    }
    values
}

/// The values that a caller may store or try for a project. Whoever may register repositories of one project only chooses
/// neither a proxy nor where a GitHub App logs in, and its address is judged like that of an Application: otherwise such a
/// caller could reach what is beside plumb.
fn permitted(
    call: &Call,
    action: &str,
    (project, url): (&str, &str),
    values: Map<String, Value>,
) -> Result<Map<String, Value>, Status> {
    if project.is_empty() || call.allows("repositories", action, url) {
        Ok(values)
    } else {
        undeclared(values)
    }
}

fn undeclared(mut values: Map<String, Value>) -> Result<Map<String, Value>, Status> {
    for field in ["proxy", "githubAppEnterpriseBaseUrl"] {
        if values.get(field).is_some_and(|value| value != "") {
            let why = format!("{field} needs the right to register repositories for all projects");
            return Err(Status::new(Code::PermissionDenied, why));
        }
    }
    values.insert(DECLARES_ADDRESS.to_owned(), json!("false"));
    Ok(values)
}

/// True if a repository without credentials is registered with just these values. With credentials it would tell a caller
/// whether a guess is right.
fn is_same(stored: &Map<String, Value>, sent: &Map<String, Value>) -> bool {
    let given = |values: &Map<String, Value>| -> Map<String, Value> {
        let said = values
            .iter()
            .filter(|(key, value)| **value != "" && !(key.as_str() == "type" && **value == "git"));
        said.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let is_public =
        |key: &String| ["url", "type", "name", "project", DECLARES_ADDRESS].contains(&key.as_str());
    let (stored, sent) = (given(stored), given(sent));
    stored == sent && sent.keys().all(is_public)
}

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let repo = sent(&call, "repo")?;
    let text = |field: &str| repo.get(field).and_then(Value::as_str).unwrap_or_default();
    let (url, project) = (text("repo"), text("project"));
    if url.is_empty() {
        return Err(Status::invalid("repo is required"));
    }
    call.require("repositories", "create", &object(Some(project), url))?;
    let values = permitted(&call, "create", (project, url), values(repo, "repo"))?;
    let wanted = normalize_repo_url(url);
    let existing = all(&call, "repository").await?.into_iter().find(|found| {
        normalize_repo_url(&found.repository.url) == wanted
            && found.repository.project.as_deref().unwrap_or_default() == project
    });
    if let Some(existing) = &existing {
        if is_same(&registration::texts(&existing.secret), &values) {
            return Ok(Answer::One(json!({"repo": url, "type": text("type"), "name": text("name")})));
        }
        if call.flag("upsert") != Some(true) {
            return Err(Status::invalid(
                "existing repository spec is different; use upsert flag to force update",
            ));
        }
        // Unlike Argo CD: overwriting needs the right to update.
        call.require("repositories", "update", &existing.object())?;
    }
    // A repository of one project may be reachable only for it, so it is not tested.
    if project.is_empty() && call.flag("credsOnly") != Some(true) {
        connect(&call, &values).await?;
    }
    let name = format!("repo-{}", fnv1a(&[url, project]));
    let secret = existing.as_ref().map(|found| &found.secret);
    registration::write(&call, secret, &name, "repository", values).await?;
    Ok(Answer::One(json!({"repo": url, "type": text("type"), "name": text("name")})))
}

pub(super) async fn update(call: Arc<Call>) -> Result<Answer, Status> {
    let repo = sent(&call, "repo")?;
    let text = |field: &str| repo.get(field).and_then(Value::as_str).unwrap_or_default();
    let found = asked(&call, text("repo"), "update").await?;
    call.require("repositories", "update", &object(Some(text("project")), text("repo")))?;
    let values = permitted(&call, "update", (text("project"), text("repo")), values(repo, "repo"))?;
    registration::write(&call, Some(&found.secret), "", "repository", values).await?;
    Ok(Answer::One(json!({"repo": text("repo"), "type": text("type"), "name": text("name")})))
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let found = asked(&call, call.text("repo"), "delete").await?;
    call.shared.backend.delete(&found.secret).await?;
    Ok(Answer::One(json!({})))
}

/// The repositories that are registered for one project, as far as the caller may see them.
pub(super) async fn of_project(call: &Call, project: &str) -> Result<Vec<Value>, Status> {
    let found = all(call, "repository").await?;
    let own = found.iter().filter(|found| found.repository.project.as_deref() == Some(project));
    let seen = own.filter(|found| call.allows("repositories", "get", &found.object()));
    Ok(seen.map(|found| shown(&found.repository)).collect())
}

/// Connects to a repository that need not be registered. The error of a server may quote an address with a login.
async fn connect(call: &Call, values: &Map<String, Value>) -> Result<(), Status> {
    let encoded = |value: &Value| STANDARD.encode(value.as_str().unwrap_or_default());
    let data: Map<String, Value> =
        values.iter().map(|(key, value)| (key.clone(), json!(encoded(value)))).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {"name": "sent", "namespace": call.namespace(),
            "labels": {"argocd.argoproj.io/secret-type": "repository"}},
    });
    let (data, _) =
        SecretData::read(&secret).map_err(|_| Status::invalid("the repository cannot be read"))?;
    let repository = Repository::read(&data).map_err(Status::invalid)?;
    let tested = call.leader()?.check_repository(repository).await;
    tested.map_err(|why| {
        let why = without_logins(&why);
        Status::new(Code::Unknown, format!("error testing repository connectivity: {why}"))
    })
}

/// Connects to a repository with the credentials of the request, or with those of a template.
pub(super) async fn validate(call: Arc<Call>) -> Result<Answer, Status> {
    let url = call.text("repo");
    call.require("repositories", "create", &object(Some(call.text("project")), url))?;
    if url.is_empty() {
        return Err(Status::invalid("repo is required"));
    }
    let mut values = values(&call.request, "repo");
    for (sent, stored) in [("enableOci", "enableOCI"), ("bearerToken", "bearerToken")] {
        if let Some(value) = values.remove(sent) {
            values.insert(stored.to_owned(), value);
        }
    }
    let values = permitted(&call, "create", (call.text("project"), url), values)?;
    connect(&call, &values).await?;
    Ok(Answer::One(json!({})))
}

/// The branches and tags of a repository. One that is not registered is public, and named by its address alone.
pub(super) async fn refs(call: Arc<Call>) -> Result<Answer, Status> {
    let url = call.text("repo");
    let wanted = normalize_repo_url(url);
    let project = call.text("appProject");
    let known = all(&call, "repository").await?.into_iter().find(|found| {
        normalize_repo_url(&found.repository.url) == wanted
            && (project.is_empty() || found.repository.project.as_deref().is_none_or(|own| own == project))
    });
    let name = known.as_ref().map_or_else(|| url.to_owned(), Found::object);
    call.require("repositories", "get", &name)?;
    let scope = known.and_then(|found| found.repository.project).unwrap_or_default();
    let refs = call.leader()?.repository_refs(url.to_owned(), scope).await;
    let refs = refs.map_err(|why| Status::precondition(without_logins(&why).into_owned()))?;
    Ok(Answer::One(json!({"branches": refs.branches, "tags": refs.tags})))
}

pub(super) async fn list_credentials(call: Arc<Call>) -> Result<Answer, Status> {
    let found = all(&call, "repo-creds").await?;
    let seen = found.iter().filter(|found| call.allows("repositories", "get", &found.repository.url));
    let items = seen.map(|found| {
        let shown = shown(&found.repository);
        json!({"url": found.repository.url, "username": shown["username"], "type": shown["type"], "enableOCI": shown["enableOCI"]})
    });
    Ok(Answer::One(json!({"metadata": {}, "items": items.collect::<Vec<_>>()})))
}

pub(super) async fn create_credentials(call: Arc<Call>) -> Result<Answer, Status> {
    let creds = sent(&call, "creds")?;
    let url = creds.get("url").and_then(Value::as_str).unwrap_or_default();
    if url.is_empty() {
        return Err(Status::invalid("url is required"));
    }
    call.require("repositories", "create", url)?;
    let existing = all(&call, "repo-creds").await?.into_iter().find(|found| found.repository.url == url);
    if existing.is_some() {
        if call.flag("upsert") != Some(true) {
            return Err(Status::invalid(
                "existing repository credentials spec is different; use upsert flag to force update",
            ));
        }
        call.require("repositories", "update", url)?;
    }
    let secret = existing.as_ref().map(|found| &found.secret);
    registration::write(
        &call,
        secret,
        &format!("creds-{}", fnv1a(&[url])),
        "repo-creds",
        values(creds, "url"),
    )
    .await?;
    Ok(Answer::One(json!({"url": url})))
}

pub(super) async fn update_credentials(call: Arc<Call>) -> Result<Answer, Status> {
    let creds = sent(&call, "creds")?;
    let url = creds.get("url").and_then(Value::as_str).unwrap_or_default();
    call.require("repositories", "update", url)?;
    let found = all(&call, "repo-creds").await?.into_iter().find(|found| found.repository.url == url);
    let found = found.ok_or_else(|| Status::not_found("repository credentials not found"))?;
    registration::write(&call, Some(&found.secret), "", "repo-creds", values(creds, "url")).await?;
    Ok(Answer::One(json!({"url": url})))
}

pub(super) async fn delete_credentials(call: Arc<Call>) -> Result<Answer, Status> {
    let url = call.text("url");
    call.require("repositories", "delete", url)?;
    let found = all(&call, "repo-creds").await?.into_iter().find(|found| found.repository.url == url);
    let found = found.ok_or_else(|| Status::not_found("repository credentials not found"))?;
    call.shared.backend.delete(&found.secret).await?;
    Ok(Answer::One(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(values: &Value) -> Repository {
        let values = values.as_object().unwrap();
        let encoded = |value: &Value| json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        let data: Map<String, Value> =
            values.iter().map(|(key, value)| (key.clone(), encoded(value))).collect();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "r"}, "data": data});
        Repository::read(&SecretData::read(&secret).unwrap().0).unwrap()
    }

    #[test]
    fn a_repository_says_that_its_credentials_are_those_of_a_template() {
        let template =
            repository(&json!({"url": "https://example.com/team", "username": "u", "password": "p"}));
        let templates = Repositories { repositories: Vec::new(), templates: vec![template] };
        let origin = |values: Value| {
            let shown = with_origin(&repository(&values), &templates);
            (shown["inheritedCreds"].clone(), shown["username"].clone())
        };
        assert_eq!(origin(json!({"url": "https://example.com/team/app"})), (json!(true), json!("u")));
        let own = json!({"url": "https://example.com/team/app", "username": "me", "password": "x"});
        assert_eq!(origin(own), (Value::Null, json!("me")));
        assert_eq!(origin(json!({"url": "https://example.com/other"})), (Value::Null, json!("")));
    }

    #[test]
    fn who_registers_for_one_project_chooses_no_proxy_and_declares_no_address() {
        let values = |sent: Value| undeclared(sent.as_object().cloned().unwrap());
        let stored = values(json!({"url": "http://localhost:1/x", "project": "team", "proxy": ""})).unwrap();
        assert_eq!(stored.get(DECLARES_ADDRESS), Some(&json!("false")));
        for field in ["proxy", "githubAppEnterpriseBaseUrl"] {
            let refused = values(json!({"url": "https://h/x", field: "http://127.0.0.1:8080"}));
            assert_eq!(refused.map_err(|status| status.code), Err(Code::PermissionDenied), "{field}");
        }
    }

    #[test]
    fn the_stored_address_is_the_one_whose_permission_was_checked() {
        let stored = |sent: Value, field: &str| Value::Object(values(&sent, field));
        let sent = json!({"repo": "https://h/team/x", "url": "https://h/platform/prod", "project": "team"});
        assert_eq!(stored(sent, "repo"), json!({"url": "https://h/team/x", "project": "team"}));
        let sent = json!({"url": "https://h/team", "username": "u", "connectionState": "x"});
        assert_eq!(stored(sent, "url"), json!({"url": "https://h/team", "username": "u"}));
    }

    #[test]
    fn the_same_repository_again_changes_nothing_unless_it_has_credentials() {
        let same =
            |stored: Value, sent: Value| is_same(stored.as_object().unwrap(), sent.as_object().unwrap());
        assert!(same(json!({"url": "a", "type": "git"}), json!({"url": "a"})));
        assert!(!same(json!({"url": "a"}), json!({"url": "a", "name": "b"})));
        assert!(!same(json!({"url": "a", "password": "x"}), json!({"url": "a", "password": "x"})));
    }
}
