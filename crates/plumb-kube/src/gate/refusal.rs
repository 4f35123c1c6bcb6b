//! Why a write did not happen.

use plumb_core::object::ObjectKey;
use plumb_core::plan::NoProof;

use crate::error::ApiError;
use crate::lease::FenceLost;

/// Why the gate refused a write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A user paused the app.
    #[error("{app} is paused: {reason}")]
    Paused {
        /// The app.
        app: String,
        /// The user's reason.
        reason: String,
    },
    /// The project does not permit the object.
    #[error("{key} is not permitted: {why}")]
    Project {
        /// Which object.
        key: ObjectKey,
        /// The rule that forbids it.
        why: String,
    },
    /// The object belongs to another app.
    #[error("{key} belongs to {owner}")]
    Foreign {
        /// Which object.
        key: ObjectKey,
        /// The app that it belongs to.
        owner: String,
    },
    /// The deletion of an object that carries no tracking mark of the app.
    #[error("cannot delete {key}: no app tracks it")]
    Untracked {
        /// Which object.
        key: ObjectKey,
    },
    /// A deletion whose proof does not exist.
    #[error("cannot delete {key}: {why}")]
    NoProof {
        /// Which object.
        key: ObjectKey,
        /// What is not proven.
        why: NoProof,
    },
    /// A deletion that a fact forbids.
    #[error("cannot delete {key}: {why}")]
    NotDeleted {
        /// Which object.
        key: ObjectKey,
        /// The fact.
        why: &'static str,
    },
    /// The deletion of an object that another app asks for.
    #[error("cannot delete {key}: the app {app} asks for it now")]
    Claimed {
        /// Which object.
        key: ObjectKey,
        /// The app that asks for it.
        app: String,
    },
    /// A deletion that could not be undone, because no tombstone can hold the object.
    #[error(
        "cannot delete {key}: it is too large for a copy, so `plumb undo` could not restore it. To delete it without a \
         copy, annotate it: `kubectl annotate {} {}{} {annotation}=true`",
        .key.kind.to_lowercase(),
        .key.name,
        .key.namespace.as_ref().map(|namespace| format!(" --namespace {namespace}")).unwrap_or_default()
    )]
    TooLargeForCopy {
        /// Which object.
        key: ObjectKey,
        /// The annotation by which a person allows it.
        annotation: &'static str,
    },
    /// The object to send is not the one of the permit.
    #[error("cannot write {sent}: the permit is for {permitted}")]
    OtherObject {
        /// The permit's object.
        permitted: ObjectKey,
        /// The object that was to be sent.
        sent: String,
    },
    /// Only plumb's own objects may be written without a permit.
    #[error("cannot write {what} without a permit: it is not one of plumb's own objects")]
    NotOwn {
        /// The object that was to be sent.
        what: String,
    },
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The gate refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// This process does not hold the lease, or lost it. The outcome of a request in flight is not known.
    #[error(transparent)]
    NotLeader(#[from] FenceLost),
    /// The API server refused it or could not be reached.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl WriteError {
    /// The API server's refusal, if it was one.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            Self::Refused(_) | Self::NotLeader(_) => None,
        }
    }
}
