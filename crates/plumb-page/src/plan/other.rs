//! Plans of what neither syncs, pauses nor deletes.

use plumb_crd::Application;

use super::PlanRequest;
use super::draft::{Draft, kubectl_annotate, kubectl_object, name_of, note_cluster, one_object, step};

pub(super) fn refresh(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let how = if request.hard {
        "Read Git again without caches, render, compare."
    } else {
        "Read Git again and compare."
    };
    draft.notes.push(format!("{how} Nothing is written to the cluster."));
    draft.button = if request.hard { "Hard refresh".to_owned() } else { "Refresh".to_owned() };
    let flag = if request.hard { "--hard-refresh" } else { "--refresh" };
    draft.commands.push(format!("plumb app get {} {flag}", name_of(app)));
    let value = if request.hard { "hard" } else { "normal" };
    draft.commands.push(kubectl_annotate(app, &format!("argocd.argoproj.io/refresh={value}")));
}

pub(super) fn terminate(draft: &mut Draft, app: &Application) {
    if app.operation.is_none() {
        draft.hurdle = Some("no operation runs".to_owned());
    }
    draft.notes.push("The running sync stops. What it has applied stays; its hooks are ended.".to_owned());
    draft.button.push_str("Terminate");
    draft.commands.push(format!("plumb app terminate-op {}", name_of(app)));
}

pub(super) fn restart(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let Some(key) = one_object(draft, request) else { return };
    if !matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet") {
        draft.hurdle = Some(format!("a {} cannot be restarted", key.kind));
    }
    draft.steps.push(step(key, "restart", "its pods are replaced one after the other", 0));
    draft.button = format!("Restart {}", key.name);
    draft.undo.push_str("Nothing to undo: the same pods start again.");
    let namespace = key.namespace_or_empty();
    draft.commands.push(format!("kubectl -n {namespace} rollout restart {}", kubectl_object(key)));
    note_cluster(draft, app);
    draft.commands.push(format!(
        "plumb app actions run {} restart --kind {} --resource-name {}",
        name_of(app),
        key.kind,
        key.name
    ));
}
