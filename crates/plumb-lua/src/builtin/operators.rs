//! Operators: External Secrets, KEDA, Strimzi, `MariaDB`, Percona, `CloudNativePG`.

use serde_json::Value;

use super::edit::{get, is_true, length, remove, set, stamp, text};
use super::kind::{ActionRequest, BuiltinKind, Outcome, action, changed, refused};
use super::workloads::suspend_or_resume;
use crate::action::Action;

const PAUSE: &str = "fa fa-fw fa-pause-circle";
const PLAY: &str = "fa fa-fw fa-play-circle";

pub(super) fn kind(group: &str, kind: &str) -> Option<BuiltinKind> {
    Some(match (group, kind) {
        ("external-secrets.io", "ExternalSecret") => {
            BuiltinKind { list: list_external, act: |name, request| force_sync("refresh", name, request) }
        }
        ("external-secrets.io", "PushSecret") => BuiltinKind {
            list: |object| vec![action("push", "").disabled_if(never_refreshes(object))],
            act: |name, request| force_sync("push", name, request),
        },
        ("keda.sh", "ScaledObject") => BuiltinKind { list: list_scaled_object, act: act_on_scaled_object },
        ("keda.sh", "ScaledJob") => BuiltinKind { list: list_scaled_job, act: act_on_scaled_job },
        ("core.strimzi.io", "StrimziPodSet") => BuiltinKind { list: list_pod_set, act: act_on_pod_set },
        ("k8s.mariadb.com", "MariaDB") => BuiltinKind { list: list_mariadb, act: suspend_or_resume },
        ("psmdb.percona.com", "PerconaServerMongoDB") => {
            BuiltinKind { list: list_percona, act: act_on_percona }
        }
        ("postgresql.cnpg.io", "Cluster") => BuiltinKind { list: list_postgres, act: act_on_postgres },
        _ => return None,
    })
}

fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    text(object, &["metadata", "annotations", key])
}

fn annotate(request: &ActionRequest<'_>, key: &str, value: &str) -> Option<Outcome> {
    changed(request, |object| set(object, &["metadata", "annotations", key], value))
}

fn never_refreshes(object: &Value) -> bool {
    let interval = match get(object, &["spec", "refreshInterval"]) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return false,
    };
    ["", "ns", "us", "µs", "ms", "s", "m", "h"].iter().any(|unit| interval == format!("0{unit}"))
}

fn list_external(object: &Value) -> Vec<Action> {
    let on_change = text(object, &["spec", "refreshPolicy"]) == Some("OnChange");
    vec![action("refresh", "").disabled_if(never_refreshes(object) && !on_change)]
}

fn force_sync(known: &str, name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    (name == known).then(|| annotate(request, "force-sync", &stamp(request.now)))?
}

const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_AT: &str = "autoscaling.keda.sh/paused-replicas";

fn list_scaled_job(object: &Value) -> Vec<Action> {
    let is_paused = annotation(object, PAUSED) == Some("true");
    vec![action("pause", PAUSE).disabled_if(is_paused), action("resume", PLAY).disabled_if(!is_paused)]
}

fn act_on_scaled_job(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    match name {
        "pause" => annotate(request, PAUSED, "true"),
        "resume" => changed(request, |object| {
            remove(object, &["metadata", "annotations", PAUSED]);
            remove(object, &["metadata", "annotations", PAUSED_AT]);
        }),
        _ => None,
    }
}

fn list_scaled_object(object: &Value) -> Vec<Action> {
    let is_paused = annotation(object, PAUSED) == Some("true");
    let at = annotation(object, PAUSED_AT);
    let is_held = is_paused || at.is_some();
    vec![
        action("pause", PAUSE).disabled_if(is_held),
        action("paused-replicas", PAUSE)
            .disabled_if(is_paused)
            .with_param("replicas", Some(at.unwrap_or("0"))),
        action("resume", PLAY).disabled_if(!is_held),
    ]
}

fn act_on_scaled_object(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    if name != "paused-replicas" {
        return act_on_scaled_job(name, request);
    }
    let Some(asked) = request.params.get("replicas") else {
        return refused("the parameter replicas is needed");
    };
    match asked.trim().parse::<u32>() {
        Ok(replicas) => annotate(request, PAUSED_AT, &replicas.to_string()),
        Err(_) => refused(format!("invalid number: {asked}")),
    }
}

const ROLL: &str = "strimzi.io/manual-rolling-update";

fn list_pod_set(object: &Value) -> Vec<Action> {
    vec![action("rolling-update", "").disabled_if(annotation(object, ROLL) == Some("true"))]
}

fn act_on_pod_set(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    (name == "rolling-update").then(|| annotate(request, ROLL, "true"))?
}

fn list_mariadb(object: &Value) -> Vec<Action> {
    if is_true(object, &["spec", "suspend"]) {
        vec![action("resume", "fa fa-fw fa-play").called("Resume")]
    } else {
        vec![action("suspend", "fa fa-fw fa-pause").called("Suspend")]
    }
}

fn list_percona(object: &Value) -> Vec<Action> {
    let is_paused = is_true(object, &["spec", "pause"]);
    vec![action("pause", PAUSE).disabled_if(is_paused), action("unpause", PLAY).disabled_if(!is_paused)]
}

fn act_on_percona(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let pause = match name {
        "pause" => true,
        "unpause" => false,
        _ => return None,
    };
    changed(request, |object| set(object, &["spec", "pause"], pause))
}

const HEALTHY: &[&str] = &["status", "instancesStatus", "healthy"];
const LOOP: &str = "cnpg.io/reconciliationLoop";

fn list_postgres(object: &Value) -> Vec<Action> {
    let loops = if annotation(object, LOOP) == Some("disabled") {
        action("resume", "fa fa-fw fa-play").called("Resume Reconciliation")
    } else {
        action("suspend", "fa fa-fw fa-pause").called("Suspend Reconciliation")
    };
    vec![
        action("restart", "fa fa-fw fa-recycle").called("Rollout restart Cluster"),
        action("reload", "fa fa-fw fa-rotate-right").called("Reload all Configuration"),
        action("promote", "fa fa-fw fa-angles-up")
            .called("Promote Replica to Primary")
            .disabled_if(length(object, HEALTHY) < 2)
            .with_param("instance", Some("any")),
        loops,
    ]
}

fn act_on_postgres(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    let now = stamp(request.now);
    match name {
        "restart" => annotate(request, "kubectl.kubernetes.io/restartedAt", &now),
        "reload" => annotate(request, "cnpg.io/reloadedAt", &now),
        "suspend" => annotate(request, LOOP, "disabled"),
        "resume" => changed(request, |object| remove(object, &["metadata", "annotations", LOOP])),
        "promote" => {
            let asked = request.params.get("instance").map_or("any", String::as_str);
            let Some(selected) = next_primary(request.object, asked) else {
                return refused(format!("no healthy instance is {asked}"));
            };
            changed(request, |object| {
                set(object, &["status", "phaseReason"], format!("Switching over to {selected}"));
                set(object, &["status", "phase"], "Switchover in progress");
                set(object, &["status", "targetPrimaryTimestamp"], now);
                set(object, &["status", "targetPrimary"], selected);
            })
        }
        _ => None,
    }
}

/// The healthy instance that is meant: by name, by number, or the one after the present primary.
fn next_primary(object: &Value, asked: &str) -> Option<String> {
    let healthy: Vec<&str> = get(object, HEALTHY)?.as_array()?.iter().filter_map(Value::as_str).collect();
    let wanted = match asked {
        "any" => {
            let primary = text(object, &["status", "currentPrimary"]).unwrap_or_default();
            let at = healthy.iter().position(|node| *node == primary);
            let next = at.map_or(0, |at| (at + 1) % healthy.len());
            return healthy.get(next).map(|node| (*node).to_owned());
        }
        number if number.parse::<u32>().is_ok() => {
            format!("{}-{number}", text(object, &["metadata", "name"]).unwrap_or_default())
        }
        name => name.to_owned(),
    };
    healthy.contains(&wanted.as_str()).then_some(wanted)
}
