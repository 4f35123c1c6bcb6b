//! The order in which sources of health are consulted.

use serde_json::Value;

use super::{Answer, Health, builtin, general, read, rules};
use crate::object::Manifest;

/// Finalizer on hook objects: a Job that its TTL deletes stays until its result is read and recorded.
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// What the user's own customisation says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Custom {
    /// There is none for this kind: continue.
    Absent,
    /// There is one. `None` means that it returned no status; no other source is consulted then.
    Judged(Option<Health>),
}

/// The health of a live object; `None` where it has none: such an object does not count for the app, and a sync does
/// not wait for it.
pub fn assess(object: &Manifest) -> Option<Health> {
    assess_with(object, |_| Custom::Absent)
}

/// [`assess`] where the user's own scripts come first (but after a pending deletion).
pub fn assess_with(object: &Manifest, custom: impl FnOnce(&Manifest) -> Custom) -> Option<Health> {
    if let Some(health) = pending_deletion(object) {
        return Some(health);
    }
    if let Custom::Judged(health) = custom(object) {
        return health;
    }
    standing(object)
}

/// [`assess`] without the check for a pending deletion.
pub fn standing(object: &Manifest) -> Option<Health> {
    for judge in [builtin::judge, rules::judge] {
        match judge(object) {
            Answer::Judged(health) => return Some(health),
            Answer::NoOpinion => return None,
            Answer::NotMine => {}
        }
    }
    general_reading(object)
}

/// The reading for kinds without code or rule, applied to any kind.
pub fn general_reading(object: &Manifest) -> Option<Health> {
    general::read(object.value())
}

/// An object that is being deleted is `Progressing`, unless it is a hook that is kept until its result is read.
pub fn pending_deletion(object: &Manifest) -> Option<Health> {
    let held_for_its_result = || {
        read::find(object.value(), "metadata.finalizers")
            .and_then(Value::as_array)
            .is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == HOOK_FINALIZER))
    };
    (object.is_terminating() && !held_for_its_result()).then(|| Health::progressing("Pending deletion"))
}
