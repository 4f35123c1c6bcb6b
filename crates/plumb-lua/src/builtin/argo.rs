//! Argo Rollouts, Argo Workflows and Applications.

use serde_json::{Value, json};

use super::edit::{get, is_true, length, owner, remove, set, stamp, text};
use super::kind::{ActionRequest, BuiltinKind, Outcome, action, changed, created};
use crate::action::Action;

const PLUS: &str = "fa fa-fw fa-plus";

pub(super) fn kind(group: &str, kind: &str) -> Option<BuiltinKind> {
    if group == "promoter.argoproj.io" && kind == "PullRequest" {
        return Some(BuiltinKind { list: list_pull_request, act: act_on_pull_request });
    }
    if group != "argoproj.io" {
        return None;
    }
    Some(match kind {
        "Rollout" => BuiltinKind { list: list_rollout, act: act_on_rollout },
        "AnalysisRun" => BuiltinKind { list: list_analysis, act: act_on_analysis },
        "Application" => BuiltinKind { list: list_application, act: act_on_application },
        "CronWorkflow" | "WorkflowTemplate" => BuiltinKind {
            list: |_| vec![action("create-workflow", PLUS).called("Create Workflow")],
            act: act_on_template,
        },
        _ => return None,
    })
}

const STEPS: &[&str] = &["spec", "strategy", "canary", "steps"];
const PAUSES: &[&str] = &["status", "pauseConditions"];
const STEP: &[&str] = &["status", "currentStepIndex"];

fn list_rollout(object: &Value) -> Vec<Action> {
    let is_paused = match get(object, PAUSES) {
        Some(_) => length(object, PAUSES) > 0,
        None => is_true(object, &["spec", "paused"]),
    };
    let status = |field: &str| get(object, &["status", field]);
    let is_promoted = status("currentPodHash") == status("stableRS");
    let is_aborted = is_true(object, &["status", "abort"]);
    let can_promote = status("observedGeneration").is_some() || get(object, &["status"]).is_some();
    let is_old_blue_green =
        is_older_than_promote_full(object) && get(object, &["spec", "strategy", "blueGreen"]).is_some();
    let step = get(object, STEP).and_then(Value::as_u64).and_then(|step| usize::try_from(step).ok());
    let has_steps = get(object, STEPS).is_some();
    vec![
        action("restart", "").called("Restart Pods"),
        action("resume", "").disabled_if(!is_paused),
        action("abort", "").disabled_if(is_promoted || is_aborted),
        action("retry", "").disabled_if(is_promoted || !is_aborted),
        action("pause", "").disabled_if(is_promoted || is_aborted || is_true(object, &["spec", "paused"])),
        action("promote-full", "").disabled_if(is_promoted || !can_promote || is_old_blue_green),
        action("skip-current-step", "").disabled_if(!has_steps || step == Some(length(object, STEPS))),
    ]
}

/// Rollouts before 0.10 wrote a hash as `observedGeneration` and knew no `promoteFull`.
fn is_older_than_promote_full(object: &Value) -> bool {
    let observed = get(object, &["status", "observedGeneration"]);
    let observed =
        observed.and_then(|value| value.as_str().map_or_else(|| value.as_f64(), |text| text.parse().ok()));
    let generation = get(object, &["metadata", "generation"]).and_then(Value::as_f64).unwrap_or(0.0);
    observed.is_none_or(|observed| observed > generation)
}

fn act_on_rollout(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let go_on = |object: &mut Value| {
        if length(object, PAUSES) > 0 {
            remove(object, PAUSES);
        }
    };
    match name {
        "restart" => changed(request, |object| set(object, &["spec", "restartAt"], stamp(request.now))),
        "pause" => changed(request, |object| set(object, &["spec", "paused"], true)),
        "abort" => changed(request, |object| set(object, &["status", "abort"], true)),
        "retry" => changed(request, |object| remove(object, &["status", "abort"])),
        "resume" => changed(request, |object| {
            go_on(object);
            if is_true(object, &["spec", "paused"]) {
                set(object, &["spec", "paused"], false);
            }
        }),
        "promote-full" => changed(request, |object| {
            if get(object, &["status"]).is_none() {
                return;
            }
            if is_older_than_promote_full(object) {
                remove(object, &["status", "abort"]);
                if get(object, STEPS).is_some() {
                    let n_steps = length(object, STEPS);
                    set(object, STEP, n_steps);
                }
            } else {
                set(object, &["status", "promoteFull"], true);
            }
        }),
        "skip-current-step" => changed(request, |object| {
            let step = get(object, STEP).and_then(Value::as_u64).unwrap_or(0);
            if usize::try_from(step).is_ok_and(|step| step < length(object, STEPS)) {
                go_on(object);
                set(object, STEP, step + 1);
            }
        }),
        _ => None,
    }
}

fn list_analysis(object: &Value) -> Vec<Action> {
    let phase = text(object, &["status", "phase"]).unwrap_or_default();
    let is_over = matches!(phase, "Successful" | "Failed" | "Error" | "Inconclusive");
    vec![action("terminate", "").disabled_if(is_over || is_true(object, &["spec", "terminate"]))]
}

fn act_on_analysis(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    (name == "terminate").then(|| changed(request, |object| set(object, &["spec", "terminate"], true)))?
}

/// `automated` without `enabled` is on.
fn syncs_by_itself(object: &Value) -> bool {
    get(object, &["spec", "syncPolicy", "automated"]).is_some_and(|automated| {
        !automated.is_null() && automated.get("enabled") != Some(&Value::Bool(false))
    })
}

fn list_application(object: &Value) -> Vec<Action> {
    let name = if syncs_by_itself(object) { "Disable Auto-Sync" } else { "Enable Auto-Sync" };
    vec![action("toggle-auto-sync", "").called(name)]
}

fn act_on_application(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let path = ["spec", "syncPolicy", "automated", "enabled"];
    let enabled = !syncs_by_itself(request.object);
    (name == "toggle-auto-sync").then(|| changed(request, |object| set(object, &path, enabled)))?
}

fn list_pull_request(object: &Value) -> Vec<Action> {
    let is_open = text(object, &["spec", "state"]) == Some("open");
    vec![action("merge", "fa fa-fw fa-code-merge").called("Merge PR").disabled_if(!is_open)]
}

fn act_on_pull_request(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    (name == "merge").then(|| changed(request, |object| set(object, &["spec", "state"], "merged")))?
}

/// A Workflow made from a `CronWorkflow` or a `WorkflowTemplate`.
fn act_on_template(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    const INSTANCE: &str = "workflows.argoproj.io/controller-instanceid";
    if name != "create-workflow" {
        return None;
    }
    let from = text(request.object, &["metadata", "name"]).unwrap_or_default();
    let mut workflow = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": format!("{from}-{}", request.now.strftime("%Y%m%d%H%M")),
            "ownerReferences": [owner(request.object)],
        },
    });
    if let Some(namespace) = get(request.object, &["metadata", "namespace"]) {
        set(&mut workflow, &["metadata", "namespace"], namespace.clone());
    }
    if text(request.object, &["kind"]) == Some("WorkflowTemplate") {
        set(&mut workflow, &["metadata", "labels", "workflows.argoproj.io/workflow-template"], from);
        set(&mut workflow, &["spec", "workflowTemplateRef", "name"], from);
        return created(workflow);
    }
    for part in ["labels", "annotations", "finalizers"] {
        if let Some(value) = get(request.object, &["spec", "workflowMetadata", part]) {
            set(&mut workflow, &["metadata", part], value.clone());
        }
    }
    set(&mut workflow, &["metadata", "labels", "workflows.argoproj.io/cron-workflow"], from);
    if let Some(instance) = get(request.object, &["metadata", "labels", INSTANCE]) {
        set(&mut workflow, &["metadata", "labels", INSTANCE], instance.clone());
    }
    set(
        &mut workflow,
        &["metadata", "annotations", "workflows.argoproj.io/scheduled-time"],
        stamp(request.now),
    );
    let spec = get(request.object, &["spec", "workflowSpec"]).cloned().unwrap_or_else(|| json!({}));
    set(&mut workflow, &["spec"], spec);
    created(workflow)
}
