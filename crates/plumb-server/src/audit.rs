//! Kubernetes events about writes through the API: who did what, to which object, from where.

use std::net::IpAddr;

use jiff::Timestamp;
use plumb_core::text::one_line;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::debug;

use crate::backend::Backend;
use crate::random;

/// How many events wait to be written. Further ones are dropped: the log has a line for each write.
const WAITING: usize = 256;
/// The component in events. It is Argo CD's name, because scripts select on it.
const COMPONENT: &str = "argocd-server";
/// The API server rejects longer messages.
const LONGEST: usize = 1000;

/// One write.
pub(crate) struct Written<'w> {
    /// `package.Service/Method`.
    pub(crate) method: &'w str,
    pub(crate) request: &'w Value,
    /// The object that was written or that the request is about, if it is an Application, project or set.
    pub(crate) object: Option<&'w Value>,
    pub(crate) user: &'w str,
    /// `None` if it is not known.
    pub(crate) from: Option<IpAddr>,
    /// The control-plane namespace.
    pub(crate) namespace: &'w str,
}

/// What else is known of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances<'w> {
    /// True if the caller may not do it, for want of a right or because of a sync window: nothing was written.
    pub(crate) is_refused: bool,
    /// The address that a proxy claims for the client; empty if none does.
    pub(crate) forwarded: &'w str,
}

/// Writes events in a task of its own. It starts with the first event.
pub(crate) struct AuditEvents {
    backend: Backend,
    sender: std::sync::OnceLock<mpsc::Sender<Value>>,
}

impl AuditEvents {
    pub(crate) fn new(backend: Backend) -> Self {
        Self { backend, sender: std::sync::OnceLock::new() }
    }

    /// Queues the event of a write. It never waits.
    pub(crate) fn record(&self, written: &Written<'_>) {
        self.record_with(written, Circumstances::default());
    }

    /// The same, with more about the request.
    pub(crate) fn record_with(&self, written: &Written<'_>, circumstances: Circumstances<'_>) {
        let Ok(id) = random::uuid() else { return };
        let event = event(written, circumstances, &id, Timestamp::now());
        let sender = self.sender.get_or_init(|| {
            let (sender, mut events) = mpsc::channel(WAITING);
            let backend = self.backend.clone();
            tokio::spawn(async move {
                while let Some(event) = events.recv().await {
                    if let Err(status) = backend.create(event).await {
                        debug!(reason = status.message, "cannot write an event");
                    }
                }
            });
            sender
        });
        if sender.try_send(event).is_err() {
            debug!("too many events wait; one is dropped");
        }
    }
}

/// The reason of an event, in Argo CD's words, and what was done.
fn words(written: &Written<'_>) -> (&'static str, String) {
    let (service, call) = written.method.split_once('/').unwrap_or_default();
    let text = |field: &str| written.request.get(field).and_then(Value::as_str).unwrap_or_default();
    let thing = match service.split('.').next().unwrap_or_default() {
        "applicationset" => "ApplicationSet",
        "repocreds" => "repository credentials",
        "gpgkey" => "GPG key",
        thing => thing,
    };
    let resource = || format!("{}/{}", text("kind"), text("resourceName"));
    match call {
        "Sync" => ("OperationStarted", "initiated sync".to_owned()),
        "Rollback" => {
            let id = written.request.get("id").and_then(Value::as_i64).unwrap_or_default();
            ("OperationStarted", format!("initiated rollback to {id}"))
        }
        "TerminateOperation" => ("ResourceUpdated", "terminated running operation".to_owned()),
        "PatchResource" => ("ResourceUpdated", format!("patched resource {}", resource())),
        "RestoreResource" => ("ResourceCreated", format!("restored resource {}", resource())),
        "DeleteResource" => ("ResourceDeleted", format!("deleted resource {}", resource())),
        "RunResourceAction" | "RunResourceActionV2" => {
            ("ResourceActionRan", format!("ran action {} on resource {}", text("action"), resource()))
        }
        "CreateToken" => ("ResourceCreated", format!("created token of {thing}")),
        "DeleteToken" => ("ResourceDeleted", format!("deleted token of {thing}")),
        call if call.starts_with("Create") => ("ResourceCreated", format!("created {thing}")),
        call if call.starts_with("Delete") => ("ResourceDeleted", format!("deleted {thing}")),
        _ => ("ResourceUpdated", format!("updated {thing}")),
    }
}

/// Events about things that are no objects of their own are about the settings.
fn event(written: &Written<'_>, circumstances: Circumstances<'_>, id: &str, now: Timestamp) -> Value {
    let (kind_of_event, (reason, what)) = if circumstances.is_refused {
        let call = written.method.split_once('/').map_or(written.method, |(_, call)| call);
        ("Warning", ("WriteRefused", format!("was refused {call}")))
    } else {
        ("Normal", words(written))
    };
    let text =
        |path: &str| written.object.and_then(|object| object.pointer(path)?.as_str()).unwrap_or_default();
    let namespace =
        if text("/metadata/namespace").is_empty() { written.namespace } else { text("/metadata/namespace") };
    let is_own = !text("/metadata/uid").is_empty();
    let kind = match written.method.split('.').next().unwrap_or_default() {
        "application" => "Application",
        "applicationset" => "ApplicationSet",
        "project" => "AppProject",
        _ => "",
    };
    let involved = if is_own && !kind.is_empty() {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "namespace": namespace,
            "name": text("/metadata/name"), "uid": text("/metadata/uid"),
            "resourceVersion": text("/metadata/resourceVersion")})
    } else {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": written.namespace, "name": "argocd-cm"})
    };
    let namespace = involved["namespace"].as_str().unwrap_or_default().to_owned();
    let user = if written.user.is_empty() { "Unknown user" } else { written.user };
    let name = involved["name"].as_str().unwrap_or_default();
    let name = format!("{}.{}", name.get(..200).unwrap_or(name), id.get(..8).unwrap_or_default());
    let message: String = one_line(&format!("{user} {what}")).chars().take(LONGEST).collect();
    let time = Timestamp::from_second(now.as_second()).unwrap_or_default().to_string();
    let mut annotations = json!({"user": one_line(user)});
    if let Some(from) = written.from {
        annotations["from"] = json!(from.to_string());
    }
    if !circumstances.forwarded.is_empty() {
        annotations["forwarded"] = json!(circumstances.forwarded);
    }
    json!({
        "apiVersion": "v1", "kind": "Event", "type": kind_of_event, "reason": reason, "message": message, "count": 1,
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "involvedObject": involved, "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT, "reportingInstance": COMPONENT,
        "firstTimestamp": time, "lastTimestamp": time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, request: &Value, object: Option<&Value>) -> Value {
        let written = written(method, request, object);
        event(&written, Circumstances::default(), "0123456789", Timestamp::UNIX_EPOCH)
    }

    fn written<'w>(method: &'w str, request: &'w Value, object: Option<&'w Value>) -> Written<'w> {
        Written {
            method,
            request,
            object,
            user: "ann\u{1b}",
            from: Some(IpAddr::from([10, 0, 0, 1])),
            namespace: "argocd",
        }
    }

    #[test]
    fn an_event_about_a_refusal_says_that_nothing_was_done() {
        let app = json!({"metadata": {"name": "shop", "namespace": "team", "uid": "u-1"}});
        let request = json!({});
        let sync = written("application.ApplicationService/Sync", &request, Some(&app));
        let refused = Circumstances { is_refused: true, forwarded: "192.0.2.1" };
        let event = event(&sync, refused, "0123456789", Timestamp::UNIX_EPOCH);
        assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("WriteRefused")));
        assert!(event["message"].as_str().unwrap().ends_with("was refused Sync"), "{event}");
        assert_eq!(event["metadata"]["annotations"]["forwarded"], "192.0.2.1");
    }

    #[test]
    fn an_event_says_who_did_what_to_which_object() {
        let app = json!({"metadata": {"name": "shop", "namespace": "team", "uid": "u-1"}});
        let sync = of("application.ApplicationService/Sync", &json!({}), Some(&app));
        assert_eq!(sync["involvedObject"]["name"], "shop");
        assert_eq!(sync["metadata"]["namespace"], "team");
        assert_eq!(sync["reason"], "OperationStarted");
        assert!(!sync.to_string().contains("\\u001b"), "{sync}");
        assert_eq!(sync["metadata"]["annotations"]["from"], "10.0.0.1");
        let request = json!({"repo": {"repo": "https://example.com", "password": "s3cr3t"}});
        let repo = of("repository.RepositoryService/CreateRepository", &request, None);
        assert_eq!(repo["involvedObject"]["name"], "argocd-cm");
        assert!(
            repo["message"].as_str().unwrap().ends_with("created repository")
                && !repo.to_string().contains("s3cr3t")
        );
    }
}
