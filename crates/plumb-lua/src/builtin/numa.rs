//! Numaflow and Numaplane: pause, go on fast or gradually, promote, allow the loss of data.

use serde_json::Value;

use super::edit::{get, remove, set, text};
use super::kind::{ActionRequest, BuiltinKind, Outcome, action, changed};
use crate::action::Action;

const FLOW: &str = "numaflow.numaproj.io";
const PLANE: &str = "numaplane.numaproj.io";

pub(super) fn kind(group: &str, kind: &str) -> Option<BuiltinKind> {
    Some(match (group, kind) {
        (FLOW, "InterStepBufferService") => BuiltinKind { list: |object| vec![force_promote(object)], act },
        (FLOW, "MonoVertex") => BuiltinKind { list: list_vertex, act },
        (FLOW, "Pipeline") => BuiltinKind { list: list_pipeline, act },
        (PLANE, "MonoVertexRollout") => BuiltinKind { list: |object| pauses(object, true), act },
        (PLANE, "PipelineRollout") => BuiltinKind { list: list_pipeline_rollout, act },
        _ => return None,
    })
}

/// The path of the paused object inside this one.
fn inner(object: &Value) -> &'static [&'static str] {
    match text(object, &["kind"]) {
        Some("MonoVertexRollout") => &["spec", "monoVertex"],
        Some("PipelineRollout") => &["spec", "pipeline"],
        _ => &[],
    }
}

fn at(object: &Value, path: &[&'static str]) -> Vec<&'static str> {
    inner(object).iter().chain(path).copied().collect()
}

fn upgrade_state(object: &Value) -> &str {
    text(object, &["metadata", "labels", "numaplane.numaproj.io/upgrade-state"]).unwrap_or_default()
}

fn pauses(object: &Value, is_allowed: bool) -> Vec<Action> {
    let is_paused = text(object, &at(object, &["spec", "lifecycle", "desiredPhase"])) == Some("Paused");
    // Numaflow's own objects carry the annotation inside their spec.
    let way: &[&'static str] = if inner(object).is_empty() { &["spec", "metadata"] } else { &["metadata"] };
    let mut path = at(object, way);
    path.extend(["annotations", "numaflow.numaproj.io/allowed-resume-strategies"]);
    let strategies = text(object, &path).unwrap_or_default();
    let (fast, slow) = match strategies {
        "fast" => (true, false),
        "slow, fast" => (true, true),
        _ => (false, true),
    };
    let play = "fa-solid fa-fw fa-play";
    let can_go_on = is_allowed && is_paused;
    vec![
        action("pause", "fa-solid fa-fw fa-pause").disabled_if(!is_allowed || is_paused),
        action("unpause-gradual", play).called("Unpause (gradual)").disabled_if(!(can_go_on && slow)),
        action("unpause-fast", play).called("Unpause (fast)").disabled_if(!(can_go_on && fast)),
    ]
}

fn force_promote(object: &Value) -> Action {
    let is_upgrading = matches!(upgrade_state(object), "in-progress" | "trial");
    let is_asked =
        text(object, &["metadata", "labels", "numaplane.numaproj.io/force-promote"]) == Some("true");
    let promote = action("force-promote", "fa-solid fa-fw fa-forward").disabled_if(!is_upgrading || is_asked);
    match text(object, &["kind"]) {
        Some("InterStepBufferService") => promote,
        _ => promote.called("Force Promote"),
    }
}

fn belongs_to(object: &Value, kind: &str) -> bool {
    let owners = get(object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["kind"] == kind)
}

fn list_vertex(object: &Value) -> Vec<Action> {
    let mut actions = pauses(object, !belongs_to(object, "MonoVertexRollout"));
    actions.push(force_promote(object));
    actions
}

fn list_pipeline(object: &Value) -> Vec<Action> {
    let state = upgrade_state(object);
    let mut actions = pauses(object, !belongs_to(object, "PipelineRollout") || state == "recyclable-expired");
    actions.push(force_promote(object));
    let can_go = matches!(state, "recyclable" | "recyclable-expired");
    actions.push(action("delete", "fa-solid fa-fw fa-trash").called("Delete").disabled_if(!can_go));
    actions
}

const LOSS: &[&str] = &["metadata", "annotations", "numaplane.numaproj.io/allow-data-loss"];

fn list_pipeline_rollout(object: &Value) -> Vec<Action> {
    let drains = text(object, &["status", "upgradeInProgress"]) == Some("PipelinePauseAndDrain");
    let allows = text(object, LOSS) == Some("true");
    let mut actions = pauses(object, true);
    actions.push(
        action("allow-data-loss", "fa-solid fa-fw fa-unlock")
            .called("Allow (Possible) Data Loss")
            .disabled_if(!drains),
    );
    actions.push(
        action("disallow-data-loss", "fa-solid fa-fw fa-lock")
            .called("Disallow Data Loss")
            .disabled_if(!allows),
    );
    actions
}

fn act(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let kind = text(request.object, &["kind"]).unwrap_or_default();
    let is_rollout = matches!(kind, "MonoVertexRollout" | "PipelineRollout");
    let has_promote = matches!(kind, "InterStepBufferService" | "MonoVertex" | "Pipeline");
    let phase = at(request.object, &["spec", "lifecycle", "desiredPhase"]);
    match name {
        "pause" if kind != "InterStepBufferService" => {
            changed(request, |object| set(object, &phase, "Paused"))
        }
        "unpause-fast" | "unpause-gradual" if kind != "InterStepBufferService" => {
            let is_fast = name == "unpause-fast";
            changed(request, |object| {
                set(object, &phase, "Running");
                match kind {
                    _ if is_rollout => {
                        set(object, &["spec", "strategy", "pauseResume", "fastResume"], is_fast);
                    }
                    "Pipeline" => {
                        let path = ["metadata", "annotations", "numaflow.numaproj.io/resume-strategy"];
                        set(object, &path, if is_fast { "fast" } else { "slow" });
                    }
                    _ if !is_fast => remove(object, &["spec", "replicas"]),
                    _ => {}
                }
            })
        }
        "force-promote" if has_promote => {
            let path = ["metadata", "labels", "numaplane.numaproj.io/force-promote"];
            changed(request, |object| set(object, &path, "true"))
        }
        "delete" if kind == "Pipeline" => {
            let path = ["metadata", "annotations", "numaplane.numaproj.io/marked-for-deletion"];
            changed(request, |object| set(object, &path, "true"))
        }
        "allow-data-loss" | "disallow-data-loss" if kind == "PipelineRollout" => {
            let allows = if name == "allow-data-loss" { "true" } else { "false" };
            changed(request, |object| set(object, LOSS, allows))
        }
        _ => None,
    }
}
