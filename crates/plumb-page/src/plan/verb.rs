//! What a user can ask for.

use plumb_core::object::ObjectKey;

/// What a user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Make the cluster equal to Git.
    Sync,
    /// Compare again.
    Refresh,
    /// Hold automated syncs and self-heal.
    Pause,
    /// End a pause.
    Resume,
    /// Stop the running operation.
    Terminate,
    /// Sync to an earlier state.
    Rollback,
    /// Delete the Application.
    Delete,
    /// Restart the pods of a workload.
    Restart,
    /// Delete one object.
    DeleteObject,
    /// Say yes to the deletions that wait for it.
    ConfirmDeletion,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 10] = [
        Self::Sync,
        Self::Refresh,
        Self::Pause,
        Self::Resume,
        Self::Terminate,
        Self::Rollback,
        Self::Delete,
        Self::Restart,
        Self::DeleteObject,
        Self::ConfirmDeletion,
    ];

    /// Its name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Refresh => "refresh",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Terminate => "terminate",
            Self::Rollback => "rollback",
            Self::Delete => "delete",
            Self::Restart => "restart",
            Self::DeleteObject => "delete-object",
            Self::ConfirmDeletion => "confirm-deletion",
        }
    }

    /// The action that Argo CD's permissions name, on the Application or on one of its objects.
    pub fn action(self, object: Option<&ObjectKey>) -> String {
        let of = |verb: &str| {
            object.map_or_else(
                || verb.to_owned(),
                |key| format!("{verb}/{}/{}/{}/{}", key.group, key.kind, key.namespace_or_empty(), key.name),
            )
        };
        match self {
            Self::Sync | Self::Terminate | Self::Rollback => "sync".to_owned(),
            Self::Refresh => "get".to_owned(),
            Self::Pause | Self::Resume | Self::ConfirmDeletion => "update".to_owned(),
            Self::Delete => "delete".to_owned(),
            Self::Restart => object.map_or_else(
                || "action/apps/Deployment/restart".to_owned(),
                |key| format!("action/{}/{}/restart", key.group, key.kind),
            ),
            Self::DeleteObject => of("delete"),
        }
    }
}

/// What a user asks for, on one app.
#[expect(clippy::struct_excessive_bools, reason = "each is a box that a user checks")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanRequest {
    /// Delete what Git no longer has.
    pub prune: bool,
    /// Only report what would be done.
    pub dry_run: bool,
    /// Hard refresh: read Git without caches.
    pub hard: bool,
    /// Delete the objects of the app, too.
    pub cascade: bool,
    /// Another revision.
    pub revision: String,
    /// Only these objects.
    pub objects: Vec<ObjectKey>,
    /// Why a pause.
    pub reason: String,
    /// How long a pause, in minutes.
    pub minutes: i64,
    /// The entry of the history to go back to.
    pub history_id: i64,
}
