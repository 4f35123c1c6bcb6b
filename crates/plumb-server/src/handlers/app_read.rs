//! Reading Applications.

use std::sync::Arc;
use std::time::Duration;

use plumb_api::{Code, SelectedFields, Status};
use plumb_core::project::normalize_repo_url;
use plumb_crd::Application;
use plumb_engine::{KnownApp, Leader};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::selector::Selector;
use crate::app_feed::without_kind;
use crate::call::{Answer, Call, app_object};

/// The annotation that requests a refresh.
const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Longest time that a request waits for a refresh.
const REFRESH_WITHIN: Duration = Duration::from_mins(5);

/// Which Applications a request means.
pub(super) struct AppFilter {
    name: String,
    projects: Vec<String>,
    selector: Selector,
    repo: String,
    namespace: String,
}

impl AppFilter {
    pub(super) fn of(call: &Call) -> Result<Self, Status> {
        let mut projects = call.texts("projects");
        let legacy = call.texts("project");
        if !legacy.is_empty() {
            projects = legacy;
        }
        let repo = call.text("repo");
        Ok(Self {
            name: call.text("name").to_owned(),
            projects,
            selector: Selector::parse(call.text("selector"))?,
            repo: if repo.is_empty() { String::new() } else { normalize_repo_url(repo) },
            namespace: call.text("appNamespace").to_owned(),
        })
    }

    pub(super) fn names_one(&self) -> bool {
        !self.name.is_empty()
    }

    /// True if the request means this Application. A name alone means the one in the control-plane namespace.
    pub(super) fn matches(&self, app: &Application, control_plane: &str) -> bool {
        let namespace = app.metadata.namespace.as_str();
        let sources = app.spec.source.iter().map(|source| &**source).chain(app.spec.sources.iter());
        let mut repos = sources.map(|source| normalize_repo_url(&source.repo_url));
        (self.name.is_empty() || self.name == app.metadata.name)
            && (self.namespace.is_empty() || self.namespace == namespace)
            && (self.name.is_empty() || !self.namespace.is_empty() || namespace == control_plane)
            && (self.projects.is_empty() || self.projects.iter().any(|project| project == app.project()))
            && (self.repo.is_empty() || repos.any(|repo| repo == self.repo))
            && self.selector.matches(&app.metadata.labels.clone().into_iter().collect())
    }
}

/// The Applications that the caller may see, sorted by name.
pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let filter = AppFilter::of(&call)?;
    // Thousands of Applications take a while, for which other requests must not wait.
    let work = tokio::task::spawn_blocking(move || listed(&call, &filter));
    work.await.unwrap_or_else(|_| Err(Status::new(Code::Internal, "the list was aborted")))
}

fn listed(call: &Call, filter: &AppFilter) -> Result<Answer, Status> {
    let leader = call.leader()?;
    let mut apps = leader.apps();
    apps.retain(|app| {
        let head = app.head().filter(|head| filter.matches(head, call.namespace()));
        head.is_some_and(|head| may_get(call, app.namespace(), app.name(), head.project()))
    });
    apps.sort_by(|one, other| (one.name(), one.namespace()).cmp(&(other.name(), other.namespace())));
    let version =
        apps.iter().filter_map(|app| app.resource_version().parse::<u64>().ok()).max().unwrap_or_default();
    let metadata = json!({"resourceVersion": version.to_string()});
    let chosen = call.fields.as_ref().and_then(|fields| fields.within("items")).filter(|items| {
        let whole: [&[&str]; 2] = [&["status", "history"], &["status", "operationState", "syncResult"]];
        !whole.iter().any(|path| items.wants(path))
    });
    if let (Some(chosen), Some(fields)) = (chosen, &call.fields) {
        let items = in_parts(&apps, &|app| shown(&leader, app, &chosen));
        let head = fields.of(&json!({"metadata": metadata})).to_string();
        // `{"metadata":…}` without its end, or `{`.
        let head = head.strip_suffix('}').unwrap_or(&head);
        let comma = if head.len() > 1 { "," } else { "" };
        return Ok(Answer::Chosen(format!("{head}{comma}\"items\":[{}]}}", items.join(","))));
    }
    let whole = |app: &KnownApp| leader.app(app.namespace(), app.name()).map(without_kind);
    let items = in_parts(&apps, &whole);
    Ok(Answer::One(json!({"metadata": metadata, "items": items})))
}

/// Fewer Applications than this are not worth a thread.
const WORTH_A_THREAD: usize = 200;

/// What `of` makes of the Applications, in their order. Many of them are shared by all processors.
fn in_parts<T: Send>(apps: &[KnownApp], of: &(impl Fn(&KnownApp) -> Option<T> + Sync)) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(apps.len() / WORTH_A_THREAD + 1);
    let part = apps.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let work = |apps: &'_ [KnownApp]| apps.iter().filter_map(of).collect::<Vec<T>>();
        let mut parts = apps.chunks(part);
        let first = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|apps| scope.spawn(move || work(apps))).collect();
        let mut all = work(first);
        for other in others {
            all.extend(other.join().unwrap_or_default());
        }
        all
    })
}

/// An Application as JSON with the chosen fields. The list of its objects is passed on as it is stored.
fn shown(leader: &Leader, app: &KnownApp, chosen: &SelectedFields) -> Option<String> {
    let mut value = chosen.of(&without_kind(app.head()?.to_json()));
    let resources = Some(()).filter(|()| chosen.wants(&["status", "resources"]));
    let Some(resources) = resources.and_then(|()| leader.resources(app)) else {
        return Some(value.to_string());
    };
    // Parts of objects are seldom asked for.
    if let Some(parts) = chosen.within("status").and_then(|status| status.within("resources")) {
        let resources: Value = serde_json::from_str(&resources).unwrap_or_default();
        value["status"]["resources"] = parts.of(&resources);
        return Some(value.to_string());
    }
    let status = value.as_object_mut()?.remove("status").unwrap_or_else(|| json!({})).to_string();
    let (value, status) = (value.to_string(), status.strip_suffix('}')?.to_owned());
    let value = value.strip_suffix('}')?;
    let comma = |text: &str| if text.len() > 1 { "," } else { "" };
    let (before, between) = (comma(value), comma(&status));
    Some(format!("{value}{before}\"status\":{status}{between}\"resources\":{resources}}}}}"))
}

/// May the caller see this Application?
pub(super) fn may_get(call: &Call, namespace: &str, name: &str, project: &str) -> bool {
    call.allows("applications", "get", &app_object(project, namespace, name, call.namespace()))
}

/// One Application; with `refresh` after it was compared again.
pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let refresh = call.request.get("refresh").and_then(Value::as_str);
    let Some(kind) = refresh else { return Ok(Answer::One(without_kind(app.value.clone()))) };
    let kind = if kind == "hard" { "hard" } else { "normal" };
    let away = || Status::unavailable("this replica does not lead any more; try again");
    let mut changes = call.shared.feed.subscribe().ok_or_else(away)?;
    let patch = json!({"metadata": {"annotations": {REFRESH: kind}}});
    let written = call.patch_app(&app.namespace, &app.name, patch).await?;
    let asked_at = written.resource_version().unwrap_or_default().to_owned();
    let refreshed = async {
        loop {
            let current = call.leader()?.app(&app.namespace, &app.name).ok_or_else(Status::denied)?;
            let text = |path: &str| current.pointer(path).and_then(Value::as_str);
            let is_asked = text("/metadata/annotations/argocd.argoproj.io~1refresh").is_some();
            if !is_asked && text("/metadata/resourceVersion") != Some(asked_at.as_str()) {
                return Ok(without_kind(current));
            }
            match changes.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(away()),
            }
        }
    };
    let late = || Status::new(Code::DeadlineExceeded, "the refresh takes too long; it continues");
    tokio::time::timeout(REFRESH_WITHIN, refreshed).await.map_err(|_| late())?.map(Answer::One)
}

/// The sync windows of an Application, and whether a user may sync now.
pub(super) async fn sync_windows(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    let leader = call.leader()?;
    let refusal = leader.manual_sync_window(&typed);
    let project = call.shared.state.project(&app.project);
    let all = project.and_then(|project| project.value().pointer("/spec/syncWindows")?.as_array().cloned());
    let all = all.unwrap_or_default();
    let (mut assigned, mut active) = (Vec::new(), Vec::new());
    for window in leader.windows(&typed) {
        // Windows of global projects come after those of the project itself, and are not shown.
        let Some(rule) = all.get(window.index) else { continue };
        let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default();
        let manual = rule.get("manualSync").and_then(Value::as_bool).unwrap_or_default();
        let shown = json!({"kind": text("kind"), "schedule": text("schedule"), "duration": text("duration"),
            "manualSync": manual});
        if window.is_open {
            active.push(shown.clone());
        }
        assigned.push(shown);
    }
    Ok(Answer::One(
        json!({"canSync": refusal.is_none(), "assignedWindows": assigned, "activeWindows": active}),
    ))
}
