//! The Secrets that register repositories.

use plumb_core::object::Manifest;
use plumb_core::project::normalize_repo_url;
use plumb_crd::settings::{Repository, RepositoryKind};
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use super::write::list;
use crate::context::Context;
use crate::error::CommandError;

/// All registered repositories with their Secrets, sorted by URL.
pub(crate) async fn registered(
    context: &Context,
    client: &ClusterClient,
) -> Result<Vec<(Repository, Manifest)>, CommandError> {
    let mut found = Vec::new();
    for (data, object) in list(context, client, "repository").await? {
        match Repository::read(&data) {
            Ok(repository) => found.push((repository, object)),
            Err(why) => {
                context.out.note(&format!("warning: cannot read secret {}: {why}", data.metadata.name));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| (&one.url, &one.project).cmp(&(&other.url, &other.project)));
    Ok(found)
}

/// The repository with this URL.
pub(crate) async fn find(
    context: &Context,
    client: &ClusterClient,
    url: &str,
    project: Option<&str>,
) -> Result<(Repository, Manifest), CommandError> {
    let wanted = normalize_repo_url(url);
    let matches = |repository: &Repository| {
        (repository.url == url || normalize_repo_url(&repository.url) == wanted)
            && project.is_none_or(|project| repository.project.as_deref() == Some(project))
    };
    let found: Vec<_> = registered(context, client)
        .await?
        .into_iter()
        .filter(|(repository, _)| matches(repository))
        .collect();
    let n = found.len();
    let mut found = found.into_iter();
    match (found.next(), n) {
        (Some(one), 1) => Ok(one),
        (Some(_), _) => Err(CommandError::new(format!("{n} projects have registered {url}"))
            .hint("select one with --project")),
        (None, _) => Err(CommandError::new(format!("repository {url} is not registered"))
            .hint("`plumb repo list` lists the repositories")),
    }
}

pub(crate) fn type_name(kind: RepositoryKind) -> &'static str {
    match kind {
        RepositoryKind::Git => "git",
        RepositoryKind::Helm { .. } => "helm",
        RepositoryKind::Oci => "oci",
    }
}

/// A repository without its credentials.
pub(crate) fn readable(repository: &Repository) -> Value {
    let mut shown = json!({
        "repo": repository.url,
        "type": type_name(repository.kind),
        "hasCredentials": !repository.credentials.is_empty(),
    });
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[field] = value;
        }
    };
    set("name", repository.name.clone().map(Value::from));
    set("project", repository.project.clone().map(Value::from));
    set("username", repository.credentials.username.clone().map(Value::from));
    set("noProxy", repository.no_proxy.clone().map(Value::from));
    set("insecure", repository.insecure.then_some(json!(true)));
    set("insecureIgnoreHostKey", repository.insecure_ignore_host_key.then_some(json!(true)));
    set("enableLfs", repository.enable_lfs.then_some(json!(true)));
    set("enableOCI", (repository.kind == RepositoryKind::Helm { oci: true }).then_some(json!(true)));
    shown
}
