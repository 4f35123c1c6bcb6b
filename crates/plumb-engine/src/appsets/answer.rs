//! Answers one question of a generator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_appset::scm::{HttpCall, ScmAnswer, SetSecret};
use plumb_appset::{GitTree, HttpAnswer};
use plumb_core::object::GroupVersionKind;
use plumb_crd::settings::SecretData;
use plumb_kube::Selection;
use plumb_render::{WebAnswer, WebRequest, ask_web};
use serde_json::Value;
use tokio::sync::Mutex;

use super::decisions::served;
use super::facts::{Answer, Commit, GitQuestion, Question};
use super::github_app::github_app;
use crate::engine::Engine;

/// Longest request to an SCM provider.
const WEB_TIMEOUT: Duration = Duration::from_secs(30);
/// Most files of a repository.
const MOST_PATHS: usize = 500_000;
/// What one path of a tree takes besides its text.
const PATH_BYTES: u64 = 64;

/// What the generators of a set may read in one generation: answers of servers, and paths of repositories.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// The trees of this generation. Revisions of one commit share one.
#[derive(Default)]
pub(super) struct Trees(Mutex<KnownTrees>);

#[derive(Default)]
struct KnownTrees {
    by_commit: BTreeMap<(String, String), Arc<GitTree>>,
    bytes: u64,
}

/// For whom the questions are answered.
pub(super) struct Asker<'a> {
    pub(super) engine: &'a Engine,
    /// The namespace of the set.
    pub(super) namespace: &'a str,
    pub(super) fetch_since: Option<Instant>,
    pub(super) trees: &'a Trees,
}

/// Long because it is a list: one arm for each question.
pub(super) async fn answer(asker: &Asker<'_>, question: Question) -> Answer {
    let (engine, own) = (asker.engine, asker.engine.options.namespace.as_str());
    match question {
        Question::Git(git) => {
            let commit = commit(asker, &git).await;
            Answer::Git(git, commit)
        }
        Question::ConfigMap(name) => {
            let data = object(engine, "ConfigMap", own, &name).await;
            Answer::ConfigMap(name, data.map(|object| texts(&object["data"])))
        }
        Question::Secret(name) => {
            let secret = secret(engine, own, &name).await;
            Answer::Secret(name, secret.map(|secret| secret.data))
        }
        Question::Objects { api_version, resource } => {
            let found = objects(engine, &api_version, &resource).await;
            Answer::Objects((api_version, resource), found)
        }
        Question::SetSecret(name) => {
            let secret = secret(engine, asker.namespace, &name).await;
            Answer::SetSecret(name, secret)
        }
        Question::SetConfigMap(name) => {
            let data = object(engine, "ConfigMap", asker.namespace, &name).await;
            Answer::SetConfigMap(name, data.map(|object| texts(&object["data"])))
        }
        Question::GithubApp(name) => {
            let secret = secret(engine, own, &name).await;
            let app = secret.and_then(|secret| github_app(&name, &secret, jiff::Timestamp::now()));
            Answer::GithubApp(name, app)
        }
        Question::Http(call) => {
            let answer = http(engine, &call).await;
            Answer::Http(call, answer)
        }
        Question::Plugin(plugin) => {
            let request = WebRequest {
                url: plugin.url.clone(),
                headers: vec![("Authorization".to_owned(), format!("Bearer {}", plugin.token))],
                body: Some(plugin.body.clone()),
                insecure: false,
                authorities: None,
                timeout: plugin.timeout,
            };
            let answer = web(engine, &request).await;
            let answer = answer.map(|answer| HttpAnswer { status: answer.status, body: answer.body });
            Answer::Plugin(plugin, answer)
        }
    }
}

async fn http(engine: &Engine, call: &HttpCall) -> Result<ScmAnswer, String> {
    let request = WebRequest {
        url: call.url.clone(),
        headers: call.headers.clone(),
        body: call.body.clone(),
        insecure: call.insecure,
        authorities: call.authorities.clone(),
        timeout: WEB_TIMEOUT,
    };
    let answer = web(engine, &request).await.and_then(|answer| within_rate(&call.url, answer));
    answer.map(|WebAnswer { status, headers, body }| ScmAnswer { status, headers, body })
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

async fn web(engine: &Engine, request: &WebRequest) -> Result<WebAnswer, String> {
    let policy = engine.config.settings().addresses(&engine.options.addresses, "");
    ask_web(&policy, request).await
}

/// A server that limits requests gives no answer at all. The message is always the same: it becomes a condition.
fn within_rate(url: &str, answer: WebAnswer) -> Result<WebAnswer, String> {
    let has_none_left = answer.headers.get("x-ratelimit-remaining").is_some_and(|left| left == "0");
    if answer.status == 429 || (answer.status == 403 && has_none_left) {
        return Err(format!(
            "GET {url}: the server limits the number of requests; use a token, or ask less often"
        ));
    }
    Ok(answer)
}

async fn secret(engine: &Engine, namespace: &str, name: &str) -> Result<SetSecret, String> {
    let object = object(engine, "Secret", namespace, name).await?;
    let (secret, _) = SecretData::read(&object).map_err(|error| error.to_string())?;
    let keys = object["data"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let text = |key: String| secret.get(&key).map(|text| (key.clone(), text.expose().to_owned()));
    Ok(SetSecret { labels: secret.metadata.labels.clone(), data: keys.filter_map(text).collect() })
}

async fn object(engine: &Engine, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
    let gvk = GroupVersionKind::from_api_version("v1", kind);
    let found = engine.home.client.get_at(&gvk, Some(namespace), name).await;
    match found {
        Ok(Some(manifest)) => Ok(manifest.value().clone()),
        Ok(None) => Err(format!("{}s \"{name}\" not found", kind.to_lowercase())),
        Err(error) => Err(error.to_string()),
    }
}

async fn objects(engine: &Engine, api_version: &str, resource: &str) -> Result<Vec<Value>, String> {
    let kind = (api_version.to_owned(), resource.to_owned());
    let Some(gvk) = served(engine, &kind) else {
        return Err(format!("the server does not serve {resource} of {api_version}"));
    };
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let found = engine.home.client.list(&gvk, &selection).await.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|manifest| manifest.value().clone()).collect())
}

/// The error of a set that reads too much.
pub(super) fn too_much() -> String {
    format!(
        "the generators read more than {} MiB of answers and paths; split the ApplicationSet",
        MOST_BYTES >> 20
    )
}

fn bytes_of(tree: &GitTree) -> u64 {
    let texts = tree.files.iter().chain(&tree.symlinks);
    texts.map(|(path, text)| (path.len() + text.len()) as u64 + PATH_BYTES).sum()
}

async fn commit(asker: &Asker<'_>, question: &GitQuestion) -> Result<Arc<Commit>, String> {
    let engine = asker.engine;
    let settings = engine.config.settings();
    let project = match &question.project {
        None => None,
        Some(name) => {
            Some(engine.config.project(name).map_err(|_| format!("project {name} cannot be used"))?)
        }
    };
    let place = (question.repo_url.as_str(), question.revision.as_str());
    let fetched = engine.sources.tree_for_set(&settings, project.as_ref(), place, asker.fetch_since).await;
    let files = Arc::new(fetched?);
    let key = (question.repo_url.clone(), files.commit().to_string());
    // One tree after the other: a large repository takes memory while it is listed.
    let mut trees = asker.trees.0.lock().await;
    if let Some(tree) = trees.by_commit.get(&key) {
        return Ok(Arc::new(Commit { tree: Arc::clone(tree), files }));
    }
    let listed = Arc::clone(&files);
    let walk = tokio::task::spawn_blocking(move || GitTree::paths_of(&*listed, MOST_PATHS));
    let tree = walk.await.map_err(|_| "a defect of plumb aborted the listing".to_owned())??;
    let bytes = bytes_of(&tree);
    if trees.bytes + bytes > MOST_BYTES {
        return Err(too_much());
    }
    trees.bytes += bytes;
    let tree = Arc::new(tree);
    trees.by_commit.insert(key, Arc::clone(&tree));
    Ok(Arc::new(Commit { tree, files }))
}
