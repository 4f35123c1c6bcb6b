//! Plans of deletions.

use std::fmt::Write as _;

use plumb_crd::annotations::DELETION_APPROVED;
use plumb_crd::application::ResourceStatus;
use plumb_crd::{Application, DriftReport};

use super::PlanRequest;
use super::draft::{DATA, Draft, kubectl_annotate, kubectl_object, name_of, note_cluster, one_object, step};
use crate::git_facts::PlanSources;
use crate::trouble::{short, sync_waits};

pub(super) fn delete(draft: &mut Draft, app: &Application, sources: &PlanSources, request: &PlanRequest) {
    if app.metadata.deletion_timestamp.is_some() {
        draft.hurdle = Some("the Application is being deleted".to_owned());
    }
    let next = sources.next.as_ref();
    let mut n_gone = 0;
    for resource in app.status.resources.iter().filter(|resource| !resource.hook) {
        let key = resource.key();
        let stays = next.and_then(|next| next.objects.get(&key)).is_some_and(|object| object.stays);
        let (what, why) = match (request.cascade, stays) {
            (false, _) => ("keep", "only the Application goes"),
            (true, true) => ("keep", "Git says that it stays"),
            (true, false) if DATA.contains(&key.kind.as_str()) => {
                ("delete", "its app goes, and its data with it")
            }
            (true, false) => ("delete", "its app goes"),
        };
        n_gone += usize::from(what == "delete");
        draft.steps.push(step(&key, what, why, resource.sync_wave));
    }
    // What goes is read first, what stays last.
    draft.steps.sort_by_key(|step| step["what"] == "keep");
    if let Some(problem) = sources.problem.as_ref().filter(|_| request.cascade) {
        draft.notes.push(format!("Which objects Git wants to keep is not known: {}.", short(problem)));
    }
    if let Some(next) =
        next.filter(|next| request.cascade && next.hooks.iter().any(|hook| hook.runs_in("PostDelete")))
    {
        let names: Vec<&str> = next
            .hooks
            .iter()
            .filter(|hook| hook.runs_in("PostDelete"))
            .map(|hook| hook.key.name.as_str())
            .collect();
        draft.notes.push(format!("Hooks of PostDelete run: {}.", names.join(", ")));
    }
    draft.typed = request.cascade;
    draft.button = if request.cascade {
        format!("Delete the Application and {n_gone} {}", if n_gone == 1 { "object" } else { "objects" })
    } else {
        "Delete the Application only".to_owned()
    };
    draft.undo = if request.cascade {
        // The screen Undo shows the objects of apps that exist: their permissions say who may see them.
        "Copies of the objects are kept: `plumb undo list` names them, `plumb undo restore` brings them back. \
         Data in volumes does not come back."
            .to_owned()
    } else {
        "Apply the Application again: it adopts its objects.".to_owned()
    };
    let flag = if request.cascade { "" } else { " --cascade=false" };
    draft.commands.push(format!("plumb app delete {}{flag}", name_of(app)));
}

pub(super) fn delete_object(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let Some(key) = one_object(draft, request) else { return };
    draft.steps.push(step(key, "delete", "you asked for it", 0));
    draft.typed = DATA.contains(&key.kind.as_str());
    let known = app.status.resources.iter().find(|resource| resource.key() == *key);
    if known.is_some_and(|resource| !resource.requires_pruning) {
        draft.notes.push("Git has it: the next sync creates it again.".to_owned());
    }
    draft.notes.push("This deletion keeps no copy. `plumb orphans --delete` keeps one.".to_owned());
    draft.button = format!("Delete {} {}", key.kind, key.name);
    let namespace = key.namespace.as_ref().map(|namespace| format!("-n {namespace} ")).unwrap_or_default();
    draft.commands.push(format!("kubectl {namespace}delete {}", kubectl_object(key)));
    note_cluster(draft, app);
}

pub(super) fn confirm_deletion(draft: &mut Draft, app: &Application, report: Option<&DriftReport>) {
    let is_leaving = app.metadata.deletion_timestamp.is_some();
    // An object that Git has may ask for a confirmation, too; it is not to be deleted now unless the whole app goes.
    let asks = |resource: &ResourceStatus| {
        resource.requires_deletion_confirmation && (resource.requires_pruning || is_leaving)
    };
    // A sync that would delete most of an app waits although no object asks for it.
    let all = sync_waits(app) && !app.status.resources.iter().any(asks);
    let waits =
        |resource: &&ResourceStatus| asks(resource) || all && resource.requires_pruning && !resource.hook;
    for resource in app.status.resources.iter().filter(waits) {
        let key = resource.key();
        let findings = report.into_iter().flat_map(|report| &report.findings);
        let evidence = findings.filter(|finding| finding.key() == key).flat_map(|finding| &finding.evidence);
        let evidence: Vec<&str> = evidence.take(3).map(String::as_str).collect();
        draft.typed |= DATA.contains(&key.kind.as_str());
        draft.steps.push(step(&key, "delete", &evidence.join("; "), resource.sync_wave));
    }
    if draft.steps.is_empty() && !is_leaving {
        draft.hurdle = Some("no deletion waits for a confirmation".to_owned());
    }
    let whole =
        if is_leaving { "The Application is being deleted; all its deletions are confirmed. " } else { "" };
    draft.notes.push(format!("{whole}Only deletions that wait now are confirmed; later ones ask again."));
    draft.button = format!(
        "Confirm {} {}",
        draft.steps.len(),
        if draft.steps.len() == 1 { "deletion" } else { "deletions" }
    );
    let how = if is_leaving { "`plumb undo restore` brings it back" } else { "Undo restores it" };
    let _ = write!(draft.undo, "A copy of each object is kept; {how}. Data in volumes does not come back.");
    draft.commands.push(format!("plumb app confirm-deletion {}", name_of(app)));
    draft
        .commands
        .push(kubectl_annotate(app, &format!("--overwrite {DELETION_APPROVED}=$(date -u +%FT%TZ)")));
}
