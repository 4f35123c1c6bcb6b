//! One commit per class.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plumb_core::app::AppId;
use plumb_core::drift::DriftClass;
use plumb_git::{NewCommit, WorkingCopy, WorkingCopyError};

use super::case::{Case, UnitChange};
use super::place::FilePlace;
use super::plan::{Plan, Step};
use crate::context::Context;
use crate::error::CommandError;

/// The working copies that change. Fails if one of them is not ready for it.
pub(super) fn ready(plan: &Plan, branch: Option<&str>) -> Result<Vec<WorkingCopy>, CommandError> {
    let mut copies = Vec::new();
    for root in plan.roots() {
        let copy = WorkingCopy::open(&root).map_err(refused)?;
        copy.check_ready().map_err(refused)?;
        for file in plan.after().keys().filter_map(|place| in_copy(place, copy.root())) {
            copy.check_committed(&file).map_err(refused)?;
        }
        if let Some(branch) = branch {
            copy.check_new_branch(branch).map_err(refused)?;
        }
        copies.push(copy);
    }
    Ok(copies)
}

fn refused(error: WorkingCopyError) -> CommandError {
    let hint = match &error {
        WorkingCopyError::Dirty { .. } => "commit or stash them first; --patch only prints the changes",
        WorkingCopyError::Detached { .. } => "check out the branch that the app follows: `git switch BRANCH`",
        WorkingCopyError::BranchExists { .. } => "choose another name for --branch",
        WorkingCopyError::NotARepository { .. } => "--patch only prints the changes, and needs no repository",
        WorkingCopyError::NotCommitted { .. }
        | WorkingCopyError::NoRevision { .. }
        | WorkingCopyError::Unreadable { .. }
        | WorkingCopyError::Git { .. } => "nothing was changed",
    };
    CommandError::because("change the working copy", error).hint(hint)
}

/// Makes the branch in each working copy. Returns how many commits each one has.
pub(super) fn commit(
    plan: &Plan,
    cases: &[Case],
    copies: &[WorkingCopy],
    branch: &str,
) -> Result<BTreeMap<String, usize>, CommandError> {
    let mut made = BTreeMap::new();
    for copy in copies {
        let commits: Vec<NewCommit> =
            plan.steps.iter().filter_map(|step| new_commit(step, cases, copy.root())).collect();
        copy.commit_to_branch(branch, &commits).map_err(refused)?;
        made.insert(copy.root().display().to_string(), commits.len());
    }
    Ok(made)
}

/// Pushes the branch of each working copy.
pub(super) fn push(context: &Context, copies: &[WorkingCopy], branch: &str) -> Result<(), CommandError> {
    for copy in copies {
        copy.push(branch).map_err(|error| {
            CommandError::because(format!("push the branch {branch} of {}", copy.root().display()), error)
                .hint(format!("the branch is there; `git push --set-upstream origin {branch}` tries again"))
        })?;
        context.out.print(&format!("pushed {branch} of {}", copy.root().display()));
    }
    Ok(())
}

/// The part of a step in this working copy.
fn new_commit(step: &Step, cases: &[Case], root: &Path) -> Option<NewCommit> {
    let files =
        step.files.iter().filter_map(|(place, content)| Some((in_copy(place, root)?, content.clone())));
    let files: BTreeMap<String, Vec<u8>> = files.collect();
    (!files.is_empty()).then(|| NewCommit { message: message(step, cases), files })
}

/// The path of a file in this working copy.
fn in_copy(place: &FilePlace, root: &Path) -> Option<String> {
    place.absolute().strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

/// What changes, why, for how many objects, and what was checked.
fn message(step: &Step, cases: &[Case]) -> String {
    let reasons: BTreeSet<&str> = step.units.iter().map(|unit| unit.change.why()).collect();
    let apps: BTreeSet<&AppId> =
        step.units.iter().filter_map(|unit| cases.get(unit.case)).map(|case| &case.id).collect();
    let apps: Vec<&str> = apps.into_iter().map(|app| app.name.as_str()).collect();
    let objects: BTreeSet<String> = step.units.iter().map(|unit| unit.key.to_string()).collect();
    let reasons: Vec<String> = reasons.into_iter().map(|why| format!("- {why}")).collect();
    let objects: Vec<String> = objects.into_iter().map(|object| format!("- {object}")).collect();
    let has_edits = step.units.iter().any(|unit| !unit.change.is_of_application());
    let has_annotations = step.units.iter().any(|unit| matches!(unit.change, UnitChange::Compare(_)));
    let checked = match (has_edits, has_annotations) {
        (true, _) => "Rendered again: only the intended fields of these objects differ.",
        (false, true) => {
            "Rules name single fields of single objects; an annotation concerns the comparison of a whole app. No \
             manifest changes."
        }
        (false, false) => "The rules name single fields of single objects. No manifest changes.",
    };
    format!(
        "{}\n\nWhy ({}):\n{}\n\nObjects ({}), of {}:\n{}\n\n{checked}\n",
        subject(step.class),
        step.class,
        reasons.join("\n"),
        objects.len(),
        apps.join(", "),
        objects.join("\n")
    )
}

/// The first line of a commit, at most 72 characters.
pub(super) fn subject(class: DriftClass) -> &'static str {
    match class {
        DriftClass::SchemaDefault => "Set defaults that the API server fills in",
        DriftClass::PhantomDefault => "Remove lines that repeat defaults",
        DriftClass::EquivalentValue => "Write values as the cluster writes them",
        DriftClass::ControllerOwned => "Leave fields to the controllers that own them",
        DriftClass::RejectedField => "Correct fields that the API server does not keep",
        DriftClass::HookResidue => "Delete hooks after they have succeeded",
        DriftClass::UnstableRender => "Ignore values that change with every render",
        DriftClass::AdmissionMutated => "Accept what admission sets",
        DriftClass::UnclaimedAddition => "Ignore fields that other writers add",
        DriftClass::LiveEdit | DriftClass::Unexplained => "Keep values that were changed in the cluster",
        DriftClass::SharedResource => "Leave shared objects to the apps that own them",
        DriftClass::Behind => "Keep finished hooks and Jobs",
        DriftClass::Unadopted
        | DriftClass::Orphan
        | DriftClass::StaleOwnership
        | DriftClass::Blocked
        | DriftClass::TugOfWar => "Change manifests",
    }
}
