//! Which part of the deletion is next.

use super::cascade::cascade;
use super::hooks::{clean_up, run_hooks};
use super::{
    CASCADE, CASCADE_BACKGROUND, CASCADE_FOREGROUND, Deletion, DeletionStep, FINALIZERS, POST_DELETE,
    POST_DELETE_CLEANUP, PRE_DELETE, PRE_DELETE_CLEANUP,
};
use crate::desired::{HookPhase, Propagation};

/// What to do now with an app that is being deleted.
pub fn next(deletion: &Deletion<'_>) -> DeletionStep {
    let has = |finalizer: &str| deletion.finalizers.iter().any(|set| set == finalizer);
    if !deletion.is_destination_known {
        return DeletionStep {
            drop_finalizers: FINALIZERS.into_iter().filter(|finalizer| has(finalizer)).collect(),
            message: "the destination cluster is not known: nothing in it is deleted".to_owned(),
            ..DeletionStep::default()
        };
    }
    if has(PRE_DELETE) {
        return run_hooks(deletion, HookPhase::PreDelete, PRE_DELETE);
    }
    let cascades = [
        (CASCADE_BACKGROUND, Propagation::Background),
        (CASCADE, Propagation::Foreground),
        (CASCADE_FOREGROUND, Propagation::Foreground),
    ];
    if let Some((_, propagation)) = cascades.into_iter().find(|(finalizer, _)| has(finalizer)) {
        let finalizers =
            cascades.into_iter().map(|(finalizer, _)| finalizer).filter(|finalizer| has(finalizer));
        return cascade(deletion, propagation, finalizers.collect());
    }
    if has(POST_DELETE) {
        return run_hooks(deletion, HookPhase::PostDelete, POST_DELETE);
    }
    if has(PRE_DELETE_CLEANUP) {
        return clean_up(deletion, HookPhase::PreDelete, PRE_DELETE_CLEANUP);
    }
    if has(POST_DELETE_CLEANUP) {
        return clean_up(deletion, HookPhase::PostDelete, POST_DELETE_CLEANUP);
    }
    DeletionStep::default()
}
