//! The finalizers of an Application.

use crate::desired::{DesiredHook, HookPhase};

/// Deletes the app's objects, children first.
pub const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";
/// The same, by another name.
pub const CASCADE_FOREGROUND: &str = "resources-finalizer.argocd.argoproj.io/foreground";
/// Deletes the app's objects, children later.
pub const CASCADE_BACKGROUND: &str = "resources-finalizer.argocd.argoproj.io/background";
/// Runs `PreDelete` hooks.
pub const PRE_DELETE: &str = "pre-delete-finalizer.argocd.argoproj.io";
/// Cleans `PreDelete` hooks up.
pub const PRE_DELETE_CLEANUP: &str = "pre-delete-finalizer.argocd.argoproj.io/cleanup";
/// Runs `PostDelete` hooks.
pub const POST_DELETE: &str = "post-delete-finalizer.argocd.argoproj.io";
/// Cleans `PostDelete` hooks up.
pub const POST_DELETE_CLEANUP: &str = "post-delete-finalizer.argocd.argoproj.io/cleanup";

/// Every finalizer that is ours to remove.
pub const FINALIZERS: [&str; 7] = [
    CASCADE,
    CASCADE_FOREGROUND,
    CASCADE_BACKGROUND,
    PRE_DELETE,
    PRE_DELETE_CLEANUP,
    POST_DELETE,
    POST_DELETE_CLEANUP,
];

/// The finalizers that an app should have, given the hooks that Git has now: those for `PreDelete` and
/// `PostDelete` hooks come and go with such hooks. `None` if nothing has to change.
pub fn finalizers_for(present: &[String], hooks: &[DesiredHook]) -> Option<Vec<String>> {
    let mut wanted = present.to_vec();
    for (phase, finalizers) in [
        (HookPhase::PreDelete, [PRE_DELETE, PRE_DELETE_CLEANUP]),
        (HookPhase::PostDelete, [POST_DELETE, POST_DELETE_CLEANUP]),
    ] {
        let has_hooks = hooks.iter().any(|hook| hook.phases.contains(&phase));
        for finalizer in finalizers {
            let is_there = wanted.iter().any(|present| present == finalizer);
            if has_hooks && !is_there {
                wanted.push(finalizer.to_owned());
            } else if !has_hooks && is_there {
                wanted.retain(|present| present != finalizer);
            }
        }
    }
    (wanted != present).then_some(wanted)
}
