//! Kubernetes' own workloads.

use plumb_core::object::Manifest;
use serde_json::{Value, json};

use super::edit::{get, is_true, owner, set, stamp, text};
use super::kind::{ActionRequest, BuiltinKind, Outcome, action, changed, created, refused};
use crate::action::Action;

const REDO: &str = "fa fa-fw fa-redo";
const PAUSE: &str = "fa fa-fw fa-pause";
const PLAY: &str = "fa fa-fw fa-play";

pub(super) fn kind(group: &str, kind: &str) -> Option<BuiltinKind> {
    Some(match (group, kind) {
        ("apps", "Deployment") => BuiltinKind { list: list_deployment, act: act_on_template },
        ("apps", "StatefulSet") => {
            BuiltinKind { list: |_| vec![action("restart", REDO), scale()], act: act_on_template }
        }
        ("apps", "DaemonSet") => {
            BuiltinKind { list: |_| vec![action("restart", REDO)], act: act_on_daemon_set }
        }
        ("batch", "CronJob") => BuiltinKind { list: list_cron_job, act: act_on_cron_job },
        ("batch", "Job") => BuiltinKind { list: list_job, act: act_on_job },
        _ => return None,
    })
}

fn scale() -> Action {
    action("scale", "fa fa-fw fa-plus-circle").with_param("replicas", None)
}

fn list_deployment(object: &Value) -> Vec<Action> {
    let is_paused = is_true(object, &["spec", "paused"]);
    vec![
        action("restart", REDO),
        action("pause", "fa fa-fw fa-pause-circle").disabled_if(is_paused),
        action("resume", "fa fa-fw fa-play-circle").disabled_if(!is_paused),
        scale(),
    ]
}

fn act_on_daemon_set(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    if name == "restart" { act_on_template(name, request) } else { None }
}

fn act_on_template(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let is_deployment = text(request.object, &["kind"]) == Some("Deployment");
    match name {
        "restart" => {
            let path = ["spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"];
            changed(request, |object| set(object, &path, stamp(request.now)))
        }
        "scale" => {
            let asked = request.params.get("replicas").map_or("", String::as_str);
            match asked.trim().parse::<u32>() {
                Ok(replicas) => changed(request, |object| set(object, &["spec", "replicas"], replicas)),
                Err(_) => refused(format!("invalid number: {asked}")),
            }
        }
        "pause" if is_deployment => changed(request, |object| set(object, &["spec", "paused"], true)),
        "resume" if is_deployment => {
            changed(request, |object| super::edit::remove(object, &["spec", "paused"]))
        }
        _ => None,
    }
}

fn list_cron_job(object: &Value) -> Vec<Action> {
    let next =
        if is_true(object, &["spec", "suspend"]) { action("resume", PLAY) } else { action("suspend", PAUSE) };
    vec![action("create-job", "fa fa-fw fa-plus").called("Create Job"), next]
}

fn act_on_cron_job(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    match name {
        "create-job" => created(job_of(request)),
        _ => suspend_or_resume(name, request),
    }
}

pub(super) fn suspend_or_resume(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    match name {
        "suspend" => changed(request, |object| set(object, &["spec", "suspend"], true)),
        "resume" => changed(request, |object| {
            if is_true(object, &["spec", "suspend"]) {
                set(object, &["spec", "suspend"], false);
            }
        }),
        _ => None,
    }
}

/// A Job as the schedule would make it, marked as made by hand.
fn job_of(request: &ActionRequest<'_>) -> Value {
    let template = |field: &str| get(request.object, &["spec", "jobTemplate", field]).cloned();
    let name = text(request.object, &["metadata", "name"]).unwrap_or_default();
    let mut owner = owner(request.object);
    owner["controller"] = json!(true);
    owner["blockOwnerDeletion"] = json!(true);
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": template("metadata").unwrap_or_else(|| json!({})),
        "spec": template("spec").unwrap_or_else(|| json!({})),
    });
    set(&mut job, &["metadata", "name"], format!("{name}-{}", request.now.strftime("%y%m%d%H%M")));
    if let Some(namespace) = get(request.object, &["metadata", "namespace"]) {
        set(&mut job, &["metadata", "namespace"], namespace.clone());
    }
    set(&mut job, &["metadata", "annotations", "cronjob.kubernetes.io/instantiate"], "manual");
    set(&mut job, &["metadata", "ownerReferences"], json!([owner]));
    debug_assert!(Manifest::new(job.clone()).is_ok());
    job
}

fn list_job(object: &Value) -> Vec<Action> {
    if is_over(object) {
        return Vec::new();
    }
    let next =
        if is_true(object, &["spec", "suspend"]) { action("resume", PLAY) } else { action("suspend", PAUSE) };
    let mut actions = vec![next];
    if get(object, &["status"]).is_some() {
        actions.push(action("terminate", "fa fa-fw fa-stop"));
    }
    actions
}

/// Has the Job ended, or is it decided that it will?
fn is_over(object: &Value) -> bool {
    let conditions = get(object, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let decides = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"];
        condition["status"] == "True" && decides.iter().any(|kind| condition["type"] == *kind)
    })
}

fn act_on_job(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    if name != "terminate" {
        return suspend_or_resume(name, request);
    }
    let condition = json!({
        "type": "FailureTarget",
        "status": "True",
        "reason": "ManuallyTerminated",
        "message": "ended by hand",
        "lastTransitionTime": stamp(request.now),
    });
    changed(request, |object| {
        if is_over(object) || get(object, &["status"]).is_none() {
            return;
        }
        let mut conditions =
            get(object, &["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default();
        conditions.push(condition);
        set(object, &["status", "conditions"], conditions);
    })
}
