//! Flux: reconcile now, suspend, resume.

use serde_json::Value;

use super::edit::{is_true, set};
use super::kind::{ActionRequest, BuiltinKind, Outcome, action, changed};
use super::workloads::suspend_or_resume;
use crate::action::Action;

pub(super) fn kind(group: &str, kind: &str) -> Option<BuiltinKind> {
    let reconciles = match (group.strip_suffix(".toolkit.fluxcd.io")?, kind) {
        ("helm", "HelmRelease")
        | ("kustomize", "Kustomization")
        | ("image", "ImageRepository" | "ImageUpdateAutomation")
        | ("notification", "Receiver")
        | ("source", "Bucket" | "GitRepository" | "HelmChart" | "HelmRepository" | "OCIRepository") => true,
        ("notification", "Alert" | "Provider") => false,
        _ => return None,
    };
    Some(if reconciles {
        BuiltinKind { list: list_all, act: act_all }
    } else {
        BuiltinKind { list: list_pair, act: suspend_or_resume }
    })
}

fn list_pair(object: &Value) -> Vec<Action> {
    let is_suspended = is_true(object, &["spec", "suspend"]);
    vec![action("suspend", "").disabled_if(is_suspended), action("resume", "").disabled_if(!is_suspended)]
}

fn list_all(object: &Value) -> Vec<Action> {
    let mut actions = list_pair(object);
    actions.push(action("reconcile", "").disabled_if(is_true(object, &["spec", "suspend"])));
    actions
}

fn act_all(name: &str, request: &ActionRequest<'_>) -> Option<Outcome> {
    if name != "reconcile" {
        return suspend_or_resume(name, request);
    }
    // Flux looks only at whether the text changed.
    let asked = request.now.strftime("By plumb at: %Y-%m-%dT%H:%M:%S").to_string();
    let path = ["metadata", "annotations", "reconcile.fluxcd.io/requestedAt"];
    changed(request, |object| set(object, &path, asked))
}
