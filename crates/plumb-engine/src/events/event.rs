//! Kubernetes events on Applications and sets, with Argo CD's reasons and messages.
//!
//! [`of_change`] computes the events from the status before and after a write. `events::writer` writes them
//! in a task of its own, so that no run waits for an event or fails because of one.

use std::collections::BTreeMap;

use plumb_core::app::AppId;
use plumb_core::glob::Glob;
use plumb_core::object::GroupVersionKind;
use plumb_core::sync::OperationPhase;
use plumb_crd::application::{ApplicationStatus, OperationState};
use plumb_crd::{Application, ApplicationSet};

/// The reason of an event, as Argo CD names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    StatusRefreshed,
    ResourceUpdated,
    OperationStarted,
    OperationCompleted,
    /// Only plumb has this reason: the schema of a kind changed.
    SchemaChanged,
    /// Of a set: it created, changed or deleted an Application, or removed the finalizer of one.
    Created,
    Changed,
    Deleted,
    Released,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StatusRefreshed => "StatusRefreshed",
            Self::ResourceUpdated => "ResourceUpdated",
            Self::OperationStarted => "OperationStarted",
            Self::OperationCompleted => "OperationCompleted",
            Self::SchemaChanged => "SchemaChanged",
            Self::Created => "created",
            Self::Changed => "updated",
            Self::Deleted => "Deleted",
            Self::Released => "Updated",
        }
    }
}

/// An event about an app.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AppEvent {
    pub(crate) reason: Reason,
    pub(crate) is_warning: bool,
    pub(crate) message: String,
    /// The user who requested the operation, if a user did.
    pub(crate) user: Option<String>,
}

impl AppEvent {
    fn normal(reason: Reason, message: String) -> Self {
        Self { reason, is_warning: false, message, user: None }
    }

    /// The schema of a kind of the app's objects changed. One event for all objects of the kind.
    pub(crate) fn schema_changed(gvk: &GroupVersionKind, objects: usize) -> Self {
        let message = format!(
            "The schema of {} {} changed; objects of this app compared again: {objects}",
            gvk.api_version(),
            gvk.kind
        );
        Self::normal(Reason::SchemaChanged, message)
    }

    /// What a set did to an Application.
    pub(crate) fn of_generated(reason: Reason, application: &str) -> Self {
        let message = match reason {
            Reason::Released => format!(
                "Updated Application \"{application}\" finalizer before deletion, because application has an invalid \
                 destination"
            ),
            other => format!("{} Application \"{application}\"", other.name()),
        };
        Self::normal(reason, message)
    }

    /// A deletion that makes no progress.
    pub(crate) fn deletion_failed(error: &str) -> Self {
        let message = format!("Unable to delete application resources: {error}");
        Self { is_warning: true, ..Self::normal(Reason::StatusRefreshed, message) }
    }
}

/// The events for the change from one status of an app to the next, in order.
pub(crate) fn of_change(before: &ApplicationStatus, after: &ApplicationStatus) -> Vec<AppEvent> {
    let mut events = Vec::new();
    let (old, new) = (before.operation_state.as_deref(), after.operation_state.as_deref());
    if let Some(state) = new {
        // Times have a resolution of one second, and two syncs may start within the same second.
        let is_new = old.is_none_or(|old| {
            old.started_at != state.started_at
                || revision(old).is_some_and(|before| revision(state).is_some_and(|now| now != before))
        });
        if is_new {
            events.push(started(state));
        }
        let was_completed = !is_new && old.is_some_and(is_completed);
        if is_completed(state) && !was_completed {
            events.push(completed(state));
        }
    }
    let (old, new) = (&before.sync.status, &after.sync.status);
    if old != new {
        events
            .push(AppEvent::normal(Reason::ResourceUpdated, format!("Updated sync status: {old} -> {new}")));
    }
    let (old, new) = (&before.health, &after.health);
    if old.status != new.status {
        let mut message = format!("Updated health status: {} -> {}", old.status, new.status);
        if !new.message.is_empty() {
            message = format!("{message}: {}", new.message);
        }
        events.push(AppEvent::normal(Reason::ResourceUpdated, message));
    }
    events
}

fn is_completed(state: &OperationState) -> bool {
    state.phase().is_some_and(OperationPhase::is_completed)
}

fn revision(state: &OperationState) -> Option<String> {
    let result = state.sync_result.as_deref()?;
    Some(result.all_revisions().join(", "))
}

fn is_partial(state: &OperationState) -> bool {
    state.operation.sync.as_ref().is_some_and(|sync| !sync.resources.is_empty())
}

fn started(state: &OperationState) -> AppEvent {
    let requested = state.operation.sync.as_ref();
    let requested = requested.map(|sync| sync.all_revisions().join(", "));
    let to =
        requested.filter(|requested| !requested.is_empty()).or_else(|| revision(state)).unwrap_or_default();
    let by = &state.operation.initiated_by;
    if by.automated {
        let message = format!("Initiated automated sync to '{to}'");
        return AppEvent::normal(Reason::OperationStarted, message);
    }
    let who = if by.username.is_empty() { "Unknown user" } else { &by.username };
    let partial = if is_partial(state) { "partial " } else { "" };
    let message = format!("{who} initiated {partial}sync to {to}");
    let user = Some(by.username.clone()).filter(|user| !user.is_empty());
    AppEvent { user, ..AppEvent::normal(Reason::OperationStarted, message) }
}

fn completed(state: &OperationState) -> AppEvent {
    let mut parts =
        vec![if is_partial(state) { "Partial sync operation" } else { "Sync operation" }.to_owned()];
    if let Some(revision) = revision(state) {
        parts.push(format!("to {revision}"));
    }
    let succeeded = state.phase() == Some(OperationPhase::Succeeded);
    parts.push(if succeeded { "succeeded".to_owned() } else { format!("failed: {}", state.message) });
    AppEvent { is_warning: !succeeded, ..AppEvent::normal(Reason::OperationCompleted, parts.join(" ")) }
}

/// Which events are written (`ARGOCD_ENABLE_K8S_EVENT`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventFilter {
    /// All of them.
    #[default]
    All,
    /// Events with one of these reasons. An empty list means no events.
    Only(Vec<String>),
}

impl std::str::FromStr for EventFilter {
    type Err = std::convert::Infallible;

    /// `all`, `none`, or reasons separated by commas.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let reasons: Vec<&str> = text.split(',').map(str::trim).filter(|reason| !reason.is_empty()).collect();
        Ok(match reasons.as_slice() {
            reasons if reasons.contains(&"none") => Self::Only(Vec::new()),
            [] => Self::All,
            reasons if reasons.contains(&"all") => Self::All,
            reasons => Self::Only(reasons.iter().map(|&reason| reason.to_owned()).collect()),
        })
    }
}

impl EventFilter {
    pub(super) fn passes(&self, reason: Reason) -> bool {
        match self {
            Self::All => true,
            Self::Only(reasons) => reasons.iter().any(|wanted| wanted == reason.name()),
        }
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Involved {
    Application,
    ApplicationSet,
}

/// An event that waits to be written, and the Application or set that it is about.
#[derive(Clone, Debug)]
pub(crate) struct PendingEvent {
    pub(super) involved: Involved,
    pub(crate) app: AppId,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) event: AppEvent,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

impl PendingEvent {
    pub(crate) fn new(
        application: &Application,
        server: &str,
        event: AppEvent,
        labels: BTreeMap<String, String>,
    ) -> Self {
        let mut annotations = BTreeMap::from([
            ("dest-server".to_owned(), server.to_owned()),
            ("dest-namespace".to_owned(), application.spec.destination.namespace.clone()),
        ]);
        if let Some(user) = &event.user {
            annotations.insert("user".to_owned(), user.clone());
        }
        Self {
            involved: Involved::Application,
            app: application.id(),
            uid: application.metadata.uid.clone(),
            resource_version: application.metadata.resource_version.clone(),
            event,
            labels,
            annotations,
        }
    }

    /// An event about a set.
    pub(crate) fn of_set(set: &ApplicationSet, event: AppEvent) -> Self {
        let metadata = &set.metadata;
        Self {
            involved: Involved::ApplicationSet,
            app: AppId { namespace: metadata.namespace.clone(), name: metadata.name.clone() },
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            event,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        }
    }
}

/// Which labels of an app and of its project are copied to its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelFilter {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

impl LabelFilter {
    /// Compiles patterns for label keys. An invalid pattern matches nothing.
    pub(crate) fn new(include: &[String], exclude: &[String]) -> Self {
        let compile = |patterns: &[String]| -> Vec<Glob> {
            patterns.iter().filter_map(|pattern| Glob::plain(pattern).ok()).collect()
        };
        Self { include: compile(include), exclude: compile(exclude) }
    }

    /// The labels of app and project that pass. If both have a label, the app's value is used.
    pub(crate) fn pick(
        &self,
        app: &BTreeMap<String, String>,
        project: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let any = |patterns: &[Glob], key: &str| patterns.iter().any(|pattern| pattern.matches(key));
        let passes = |key: &&String| any(&self.include, key) && !any(&self.exclude, key);
        let both = project.iter().chain(app).filter(|(key, _)| passes(key));
        both.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(value: &Value) -> ApplicationStatus {
        let object =
            json!({"metadata": {"name": "a"}, "spec": {"project": "", "destination": {}}, "status": value});
        Application::from_json(&object).unwrap().status
    }

    fn operation(phase: &str, started: &str, by: &Value, resources: &Value) -> Value {
        json!({
            "operation": {"sync": {"resources": resources}, "initiatedBy": by},
            "phase": phase, "message": "it broke", "startedAt": started,
            "syncResult": {"revision": "abc", "resources": []},
        })
    }

    fn messages(before: &Value, after: &Value) -> Vec<String> {
        let describe = |event: AppEvent| {
            let kind = if event.is_warning { "Warning" } else { "Normal" };
            format!("{kind} {} {}", event.reason.name(), event.message)
        };
        of_change(&status(before), &status(after)).into_iter().map(describe).collect()
    }

    const T1: &str = "2026-11-16T00:00:01Z";
    const T2: &str = "2026-11-16T00:00:02Z";

    #[test]
    fn two_syncs_within_a_second_have_events_of_their_own() {
        let first = operation("Succeeded", T1, &json!({"automated": true}), &json!([]));
        let mut second = first.clone();
        second["syncResult"]["revision"] = "def".into();
        let (first, second) = (json!({"operationState": first}), json!({"operationState": second}));
        assert_eq!(messages(&first, &first), Vec::<String>::new());
        assert_eq!(
            messages(&first, &second),
            [
                "Normal OperationStarted Initiated automated sync to 'def'",
                "Normal OperationCompleted Sync operation to def succeeded"
            ]
        );
    }

    #[test]
    fn only_changed_statuses_have_events() {
        let old = json!({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}});
        let new = json!({"sync": {"status": "OutOfSync"}, "health": {"status": "Degraded", "message": "web crashes"}});
        assert_eq!(
            messages(&old, &new),
            [
                "Normal ResourceUpdated Updated sync status: Synced -> OutOfSync",
                "Normal ResourceUpdated Updated health status: Healthy -> Degraded: web crashes",
            ]
        );
        assert!(messages(&old, &old).is_empty());
        assert_eq!(messages(&json!({}), &old).len(), 2);
    }

    #[test]
    fn an_operation_has_one_event_at_its_start_and_one_at_its_end() {
        let automated = json!({"automated": true});
        let person = json!({"username": "ann"});
        let none = json!([]);
        let running = json!({"operationState": operation("Running", T1, &automated, &none)});
        let done = json!({"operationState": operation("Succeeded", T1, &automated, &none)});
        assert_eq!(
            messages(&json!({}), &running),
            ["Normal OperationStarted Initiated automated sync to 'abc'"]
        );
        assert_eq!(messages(&running, &done), ["Normal OperationCompleted Sync operation to abc succeeded"]);
        assert!(messages(&done, &done).is_empty());
        let failed = json!({"operationState": operation("Failed", T2, &person, &json!([{"kind": "Pod", "name": "a"}]))});
        assert_eq!(
            messages(&done, &failed),
            [
                "Normal OperationStarted ann initiated partial sync to abc",
                "Warning OperationCompleted Partial sync operation to abc failed: it broke",
            ]
        );
    }

    #[test]
    fn a_filter_is_all_none_or_reasons() {
        let filter = |text: &str| text.parse::<EventFilter>().unwrap();
        assert!(filter("all").passes(Reason::ResourceUpdated) && filter("").passes(Reason::ResourceUpdated));
        assert!(!filter("none").passes(Reason::ResourceUpdated));
        let only = filter("OperationStarted, OperationCompleted");
        assert!(only.passes(Reason::OperationCompleted) && !only.passes(Reason::ResourceUpdated));
    }

    #[test]
    fn labels_pass_by_pattern() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let filter = LabelFilter::new(&["team".to_owned(), "env*".to_owned()], &["env-secret".to_owned()]);
        let picked = filter.pick(
            &labels(&[("team", "a"), ("env-secret", "x"), ("other", "y")]),
            &labels(&[("team", "b"), ("env", "prod")]),
        );
        assert_eq!(picked, labels(&[("team", "a"), ("env", "prod")]));
        assert!(LabelFilter::default().pick(&picked, &picked).is_empty());
    }
}
