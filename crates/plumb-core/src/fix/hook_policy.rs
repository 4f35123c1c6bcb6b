//! A hook that is deleted once it has succeeded.

use serde_json::Value;

use crate::object::{FieldPath, Manifest};
use crate::yaml::Operation;

/// The annotation of each tool, what it says by default, and the word for "delete it once it has succeeded".
const POLICIES: [(&str, &str, &str, &str); 2] = [
    (
        "argocd.argoproj.io/hook",
        "argocd.argoproj.io/hook-delete-policy",
        "BeforeHookCreation",
        "HookSucceeded",
    ),
    ("helm.sh/hook", "helm.sh/hook-delete-policy", "before-hook-creation", "hook-succeeded"),
];

/// Does a sync run the object as a hook?
pub(super) fn is_hook(object: &Manifest) -> bool {
    POLICIES.iter().any(|(annotation, ..)| object.annotation(annotation).is_some())
}

/// The change that adds `HookSucceeded` to the delete policy of a hook. `None` if the object is not a hook, or has it.
pub(super) fn delete_after_success(hook: &Manifest) -> Option<Operation> {
    let (_, annotation, default, wanted) =
        POLICIES.into_iter().find(|(hook_annotation, ..)| hook.annotation(hook_annotation).is_some())?;
    let current = hook.annotation(annotation).unwrap_or_default();
    let words = || current.split(',').map(str::trim).filter(|word| !word.is_empty());
    if words().any(|word| word == wanted) {
        return None;
    }
    // Without a policy, a hook is deleted before its next run. A policy replaces that default.
    let kept = if words().next().is_none() { default } else { current };
    let path = FieldPath::root().field("metadata").field("annotations").field(annotation);
    Some(Operation::Set { path, value: Value::from(format!("{kept},{wanted}")) })
}
