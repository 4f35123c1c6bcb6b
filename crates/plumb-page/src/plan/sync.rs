//! Plans of syncs and rollbacks.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use plumb_core::object::ObjectKey;
use plumb_crd::application::ResourceStatus;
use plumb_crd::{Application, DriftFinding, DriftReport};
use serde_json::Value;

use super::PlanRequest;
use super::draft::{DATA, Draft, MANY, name_of, quoted, refuse_busy, step};
use crate::git_facts::PlanSources;
use crate::trouble::short;

/// How many objects of a sync are applied, deleted, kept and equal.
#[derive(Default)]
struct SyncCounts {
    applied: usize,
    deleted: usize,
    kept: usize,
    same: usize,
}

pub(super) fn sync(
    draft: &mut Draft,
    app: &Application,
    report: Option<&DriftReport>,
    sources: &PlanSources,
    request: &PlanRequest,
) {
    refuse_busy(draft, app);
    let counts = sync_steps(draft, app, report, sources, request);
    let SyncCounts { applied, deleted, kept, same } = counts;
    draft.typed |= deleted > MANY && deleted * 2 > applied + deleted + kept + same;
    if same > 0 {
        let objects = if same == 1 {
            "1 object is equal to Git. It is"
        } else {
            &format!("{same} objects are equal to Git. They are")
        };
        draft.notes.push(format!("{objects} applied again, which changes nothing."));
    }
    if kept > 0 {
        let objects = if kept == 1 {
            "1 object that left Git stays"
        } else {
            &format!("{kept} objects that left Git stay")
        };
        draft.notes.push(format!("{objects}, because prune is off."));
    }
    note_sources(draft, app, sources);
    let dry = if request.dry_run { "Dry run: " } else { "" };
    let n_hooks = draft.steps.iter().filter(|step| step["what"] == "hook").count();
    draft.button = match (applied, deleted) {
        (0, 0) if n_hooks == 1 => "Run 1 hook".to_owned(),
        (0, 0) if n_hooks > 1 => format!("Run {n_hooks} hooks"),
        (0, 0) => format!("{dry}Sync, nothing to change"),
        (applied, 0) => format!("{dry}Apply {applied}"),
        (0, deleted) => format!("{dry}Delete {deleted}"),
        (applied, deleted) => format!("{dry}Apply {applied}, delete {deleted}"),
    };
    let copies = if deleted > 0 { "A copy of each deleted object is kept; Undo restores it. " } else { "" };
    let back = if is_automated(app) {
        "To go back, revert the commit."
    } else {
        "Rollback goes back to the state before."
    };
    draft.undo = if request.dry_run { String::new() } else { format!("{copies}{back}") };
    draft.commands.push(sync_command(app, request));
}

/// Which commit the plan is about, and what is not known.
fn note_sources(draft: &mut Draft, app: &Application, sources: &PlanSources) {
    if let Some(problem) = &sources.problem {
        draft.notes.push(format!(
            "Made from the last comparison: {}. Hooks and a new commit are not listed.",
            short(problem)
        ));
        return;
    }
    let Some(next) = &sources.next else { return };
    if next.revision != app.status.sync.revision && !app.status.sync.revision.is_empty() {
        let before = app.status.sync.revision.get(..7).unwrap_or(&app.status.sync.revision);
        draft.notes.push(format!("Goes to {}; the last comparison was with {before}.", next.short()));
    }
    if next.hooks.iter().any(|hook| hook.runs_in("SyncFail")) {
        draft.notes.push("Hooks of SyncFail run only if the sync fails.".to_owned());
    }
}

/// The hooks of one phase as steps.
fn hook_steps(draft: &mut Draft, sources: &PlanSources, request: &PlanRequest, phase: &str, why: &str) {
    // A sync of some objects runs no hooks.
    if !request.objects.is_empty() || request.dry_run {
        return;
    }
    for hook in sources.next.iter().flat_map(|next| &next.hooks).filter(|hook| hook.runs_in(phase)) {
        draft.steps.push(step(&hook.key, "hook", &format!("{phase}: {why}"), hook.wave));
    }
}

/// What happens to each object. Long because each way out of the loop counts another thing.
fn sync_steps(
    draft: &mut Draft,
    app: &Application,
    report: Option<&DriftReport>,
    sources: &PlanSources,
    request: &PlanRequest,
) -> SyncCounts {
    let asked: HashSet<&ObjectKey> = request.objects.iter().collect();
    let is_asked = |key: &ObjectKey| asked.is_empty() || asked.contains(key);
    let mut findings: HashMap<ObjectKey, &DriftFinding> = HashMap::new();
    for finding in report.into_iter().flat_map(|report| &report.findings).filter(|finding| finding.counts) {
        findings.entry(finding.key()).or_insert(finding);
    }
    let why = |key: &ObjectKey| {
        findings.get(key).map_or_else(String::new, |finding| {
            let evidence = finding.evidence.first().map_or("", String::as_str);
            format!("{}: {evidence}", finding.class)
        })
    };
    hook_steps(draft, sources, request, "PreSync", "runs before anything is applied");
    let mut counts = SyncCounts::default();
    let mut steps: Vec<(bool, i64, Value)> = Vec::new();
    let next = sources.next.as_ref();
    let known: HashSet<ObjectKey> = app.status.resources.iter().map(ResourceStatus::key).collect();
    for resource in app.status.resources.iter().filter(|resource| !resource.hook) {
        let key = resource.key();
        if !is_asked(&key) {
            continue;
        }
        let in_git = next.and_then(|next| next.objects.get(&key));
        let wave = in_git.map_or(resource.sync_wave, |object| object.wave);
        let has_left = if next.is_some() { in_git.is_none() } else { resource.requires_pruning };
        if has_left && request.prune {
            counts.deleted += 1;
            draft.typed |= DATA.contains(&key.kind.as_str());
            let waits =
                if resource.requires_deletion_confirmation { "; it waits for a confirmation" } else { "" };
            steps.push((true, wave, step(&key, "delete", &format!("it is no longer in Git{waits}"), wave)));
        } else if has_left {
            counts.kept += 1;
            let text = "it is no longer in Git; prune would delete it";
            steps.push((true, wave, step(&key, "keep", text, wave)));
        } else if let Some(change) = sources.change(&key) {
            counts.applied += 1;
            steps.push((false, wave, step(&key, "apply", &change, wave)));
        } else if resource.status == "OutOfSync" {
            counts.applied += 1;
            steps.push((false, wave, step(&key, "apply", &why(&key), wave)));
        } else {
            counts.same += 1;
        }
    }
    let new = next.into_iter().flat_map(|next| &next.objects).filter(|(key, _)| !known.contains(key));
    for (key, object) in new.filter(|(key, _)| is_asked(key)) {
        counts.applied += 1;
        let why = sources.change(key).unwrap_or_else(|| "the cluster does not have it yet".to_owned());
        steps.push((false, object.wave, step(key, "create", &why, object.wave)));
    }
    steps.sort_by_key(|(is_last, wave, _)| (*is_last, *wave));
    draft.steps.extend(steps.into_iter().map(|(_, _, step)| step));
    hook_steps(draft, sources, request, "Sync", "runs beside the objects");
    hook_steps(draft, sources, request, "PostSync", "runs after everything is healthy");
    counts
}

fn sync_command(app: &Application, request: &PlanRequest) -> String {
    let mut command = format!("plumb app sync {}", name_of(app));
    for (flag, holds) in [(" --prune", request.prune), (" --dry-run", request.dry_run)] {
        if holds {
            command.push_str(flag);
        }
    }
    if !request.revision.is_empty() {
        let _ = write!(command, " --revision {}", quoted(&request.revision));
    }
    for key in &request.objects {
        let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let object = format!("{}:{}:{namespace}{}", key.group, key.kind, key.name);
        let _ = write!(command, " --resource {}", quoted(&object));
    }
    command
}

/// True if plumb syncs the app by itself, so that it would undo a rollback.
fn is_automated(app: &Application) -> bool {
    let automated = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    automated.is_some_and(|automated| automated.enabled != Some(false))
}

pub(super) fn rollback(draft: &mut Draft, app: &Application, sources: &PlanSources, request: &PlanRequest) {
    refuse_busy(draft, app);
    if sources.next.is_some() {
        let counts = sync_steps(draft, app, None, sources, request);
        if counts.kept > 0 {
            draft.notes.push("What that revision does not have stays, because prune is off.".to_owned());
        }
    }
    note_sources(draft, app, sources);
    match app.status.history.iter().find(|past| past.id == request.history_id) {
        None => draft.hurdle = Some(format!("the history has no entry {}", request.history_id)),
        Some(past) => {
            let revision = Some(&past.revision).filter(|text| !text.is_empty()).or(past.revisions.first());
            let revision: String = revision.map(|text| text.chars().take(12).collect()).unwrap_or_default();
            draft.notes.push(format!("Sync to {revision}, as it was applied on {}.", past.deployed_at));
            draft.button = format!("Roll back to {revision}");
        }
    }
    if is_automated(app) {
        draft.hurdle = Some(
            "automated sync would undo it: pause does not help, turn automation off in Git first".to_owned(),
        );
    }
    draft.undo.push_str("A later sync goes to what Git has.");
    draft.commands.push(format!("plumb app rollback {} {}", name_of(app), request.history_id));
}
