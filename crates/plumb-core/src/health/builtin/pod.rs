//! `v1` Pod.
//!
//! A pod that restarts for ever is judged by whether it serves; one that runs to its end is `Progressing` until
//! it ended. The waiting reasons of init containers are not read, as in Argo CD: the pod is `Pending` then.

use serde_json::Value;

use super::super::Health;
use super::super::read::{Condition, Read, at, conditions, int, list, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let containers = list(object, "status.containerStatuses")?;
    let runs_for_ever =
        text(object, "spec.restartPolicy")? == "Always" || is_to_be_judged_as_long_running(object)?;
    if runs_for_ever && let Some(health) = judge_waiting(containers)? {
        return Ok(health);
    }
    let message = text(object, "status.message")?;
    Ok(match text(object, "status.phase")? {
        "Succeeded" => Health::healthy(message),
        "Failed" if !message.is_empty() => Health::degraded(message),
        "Failed" => {
            let initial = list(object, "status.initContainerStatuses")?;
            Health::degraded(first_failure(initial)?.or(first_failure(containers)?).unwrap_or_default())
        }
        "Running" if runs_for_ever => judge_long_running(object, containers, message)?,
        "Pending" => Health::progressing(message),
        "Running" if matches!(text(object, "spec.restartPolicy")?, "OnFailure" | "Never") => {
            Health::progressing(message)
        }
        phase => Health::unknown(format!("the pod's phase is {phase:?}")),
    })
}

/// A pod of a batch-like owner may ask to be judged by whether it serves; hooks may not, they have to end.
fn is_to_be_judged_as_long_running(object: &Value) -> Read<bool> {
    let Some(annotations) = at(object, "metadata.annotations")? else { return Ok(false) };
    let is_set = |key: &str| annotations.get(key).and_then(Value::as_str);
    let is_hook = is_set("argocd.argoproj.io/hook").or_else(|| is_set("helm.sh/hook")).is_some();
    Ok(!is_hook && is_set("argocd.argoproj.io/ignore-restart-policy") == Some("true"))
}

fn judge_waiting(containers: &[Value]) -> Read<Option<Health>> {
    for container in containers {
        let reason = text(container, "state.waiting.reason")?;
        if reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff") {
            let message = text(container, "state.waiting.message")?;
            let words = if message.is_empty() { reason } else { message };
            return Ok(Some(Health::degraded(format!("container {}: {words}", text(container, "name")?))));
        }
    }
    Ok(None)
}

fn judge_long_running(object: &Value, containers: &[Value], message: &str) -> Read<Health> {
    if conditions(object)?.iter().find(|condition| condition.kind == "Ready").is_some_and(Condition::is_true)
    {
        return Ok(Health::healthy(message));
    }
    for container in containers {
        if let Some(ended) = at(container, "lastState.terminated")? {
            let name = text(container, "name")?;
            let code = int(ended, "exitCode")?.unwrap_or(0);
            return Ok(Health::degraded(format!(
                "container {name} ended with code {code} and was restarted"
            )));
        }
    }
    Ok(Health::progressing(message))
}

fn first_failure(containers: &[Value]) -> Read<Option<String>> {
    for container in containers {
        let Some(ended) = at(container, "state.terminated")? else { continue };
        let message = text(ended, "message")?;
        if !message.is_empty() {
            return Ok(Some(message.to_owned()));
        }
        let reason = text(ended, "reason")?;
        if reason == "OOMKilled" {
            return Ok(Some(reason.to_owned()));
        }
        let code = int(ended, "exitCode")?.unwrap_or(0);
        if code != 0 {
            return Ok(Some(format!(
                "container {:?} failed with exit code {code}",
                text(container, "name")?
            )));
        }
    }
    Ok(None)
}
