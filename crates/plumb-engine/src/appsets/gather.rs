//! Answers the questions of generators.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_appset::scm::{ScmAnswer, ScmRules, SetSecret};
use plumb_appset::{
    Follows, Generated, GenerationError, GitTree, HttpAnswer, Reason, Settings, Total, follows, generate,
};
use plumb_core::object::GroupVersionKind;
use plumb_crd::ApplicationSet;
use plumb_crd::settings::SecretData;
use plumb_kube::Selection;
use plumb_render::{WebAnswer, WebRequest, ask_web};
use serde_json::Value;

use super::facts::{Commit, GitQuestion, Known, Question};
use super::github_app::github_app;
use crate::engine::Engine;

/// Answers lead to new questions, but not for ever.
const MOST_ROUNDS: usize = 50;
/// Most questions of one generation.
const MOST_QUESTIONS: usize = 2000;
/// Longest request to an SCM provider or a plugin.
const WEB_TIMEOUT: Duration = Duration::from_secs(30);
/// Most files of a repository.
const MOST_PATHS: usize = 500_000;

/// What a set generates, and what it asked.
pub(crate) struct Asked {
    pub(crate) generated: Result<Generated, GenerationError>,
    pub(super) follows: Follows,
    pub(super) clusters: bool,
}

/// Generates the Applications of a set. `fetch_since` asks the Git servers again, unless that was done since.
pub(crate) async fn generate_set(
    engine: &Arc<Engine>,
    set: &Arc<ApplicationSet>,
    fetch_since: Option<Instant>,
) -> Asked {
    let settings = engine.config.settings();
    let mut known = Known {
        clusters: engine.set_signals.clusters(),
        projects: engine.config.project_names(),
        namespace: set.metadata.namespace.clone(),
        scm_rules: ScmRules {
            enabled: settings.app_sets.scm_providers,
            allowed: settings.app_sets.allowed_scm_providers.clone(),
            needs_list: set.metadata.namespace != engine.options.namespace,
            strict_tokens: settings.app_sets.strict_token_refs,
        },
        ..Known::default()
    };
    let options = Settings {
        new_git_file_globbing: settings.app_sets.new_git_file_globbing,
        include_hidden_directories: false,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::now(),
        seed: seed(set),
    };
    let mut n_questions = 0;
    let mut rounds = 0;
    let generated = loop {
        let (returned, result) = attempt(known, set, &options).await;
        known = returned;
        let open: Vec<Question> = std::mem::take(&mut *known.open.borrow_mut()).into_iter().collect();
        let is_open = matches!(&result, Err(error) if error.reason == Reason::Unanswered);
        rounds += 1;
        n_questions += open.len();
        if !is_open {
            break result;
        }
        if open.is_empty() || rounds >= MOST_ROUNDS || n_questions > MOST_QUESTIONS {
            break Err(GenerationError::generation(
                "the generators ask for too many repositories and objects; split the ApplicationSet",
            ));
        }
        for question in open {
            answer(engine, &mut known, question, fetch_since).await;
        }
    };
    let clusters = *known.asked_clusters.borrow();
    let set = Arc::clone(set);
    let followed = tokio::task::spawn_blocking(move || follows(&set, &known, &options)).await;
    Asked { generated, follows: followed.unwrap_or_default(), clusters }
}

/// Generates with what is known. Templates take processor time, so this leaves the thread to others.
async fn attempt(
    known: Known,
    set: &Arc<ApplicationSet>,
    options: &Settings,
) -> (Known, Result<Generated, GenerationError>) {
    let (set, options) = (Arc::clone(set), options.clone());
    let attempt = tokio::task::spawn_blocking(move || {
        let result = generate(&set, &known, &options);
        (known, result)
    });
    attempt.await.unwrap_or_else(|_| {
        let error = "a defect of plumb aborted the generation; nothing is changed";
        (Known::default(), Err(GenerationError::generation(error)))
    })
}

/// Random functions give the same values each time, so that a set does not change its Applications with each run.
fn seed(set: &ApplicationSet) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(set.metadata.uid.as_bytes()).into()
}

/// Long because it is a list: one arm for each question.
async fn answer(engine: &Engine, known: &mut Known, question: Question, fetch_since: Option<Instant>) {
    match question {
        Question::Git(git) => {
            let commit = commit(engine, &git, fetch_since).await;
            known.git.insert(git, commit);
        }
        Question::ConfigMap(name) => {
            let data = object(engine, "ConfigMap", &engine.options.namespace, &name).await;
            let data = data.map(|object| texts(&object["data"]));
            known.config_maps.insert(name, data);
        }
        Question::Secret(name) => {
            let secret = secret(engine, &engine.options.namespace, &name).await;
            known.secrets.insert(name, secret.map(|secret| secret.data));
        }
        Question::Objects { api_version, resource } => {
            let found = objects(engine, &api_version, &resource).await;
            known.objects.insert((api_version, resource), found);
        }
        Question::SetSecret(name) => {
            let secret = secret(engine, &known.namespace, &name).await;
            known.set_secrets.insert(name, secret);
        }
        Question::SetConfigMap(name) => {
            let data = object(engine, "ConfigMap", &known.namespace, &name).await;
            known.set_config_maps.insert(name, data.map(|object| texts(&object["data"])));
        }
        Question::GithubApp(name) => {
            let secret = secret(engine, &engine.options.namespace, &name).await;
            let app = secret.and_then(|secret| github_app(&name, &secret, jiff::Timestamp::now()));
            known.github_apps.insert(name, app);
        }
        Question::Http(call) => {
            let request = WebRequest {
                url: call.url.clone(),
                headers: call.headers.clone(),
                body: call.body.clone(),
                insecure: call.insecure,
                authorities: call.authorities.clone(),
                timeout: WEB_TIMEOUT,
            };
            let answer = web(engine, &request).await.and_then(|answer| within_rate(&call.url, answer));
            let answer =
                answer.map(|WebAnswer { status, headers, body }| ScmAnswer { status, headers, body });
            known.http.insert(call, answer);
        }
        Question::Plugin(url, token, body) => {
            let request = WebRequest {
                url: url.clone(),
                headers: vec![("Authorization".to_owned(), format!("Bearer {token}"))],
                body: Some(body.clone()),
                insecure: false,
                authorities: None,
                timeout: WEB_TIMEOUT,
            };
            let answer = web(engine, &request).await;
            let answer = answer.map(|answer| HttpAnswer { status: answer.status, body: answer.body });
            known.plugins.insert((url, token, body), answer);
        }
    }
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
    let client = &engine.home.client;
    let wanted = GroupVersionKind::from_api_version(api_version, "");
    let catalog = client.catalog();
    let kind =
        catalog.kinds.iter().find(|(kind, served)| kind.group == wanted.group && served.plural == resource);
    let Some((kind, _)) = kind else {
        return Err(format!("the server does not serve {resource} of {api_version}"));
    };
    let gvk = GroupVersionKind::from_api_version(api_version, &kind.kind);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let found = client.list(&gvk, &selection).await.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|manifest| manifest.value().clone()).collect())
}

async fn commit(
    engine: &Engine,
    question: &GitQuestion,
    fetch_since: Option<Instant>,
) -> Result<Arc<Commit>, String> {
    let settings = engine.config.settings();
    let project = match &question.project {
        None => None,
        Some(name) => {
            Some(engine.config.project(name).map_err(|_| format!("project {name} cannot be used"))?)
        }
    };
    let place = (question.repo_url.as_str(), question.revision.as_str());
    let files = engine.sources.tree_for_set(&settings, project.as_ref(), place, fetch_since).await;
    let files = files?;
    let walk = tokio::task::spawn_blocking(move || {
        GitTree::paths_of(&files, MOST_PATHS).map(|tree| Commit { tree, files })
    });
    let commit = walk.await.map_err(|_| "a defect of plumb aborted the listing".to_owned())?;
    commit.map(Arc::new)
}
