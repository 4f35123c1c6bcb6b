//! Why a write did not happen.

use plumb_core::object::ObjectKey;
use plumb_core::plan::NoProof;

use crate::error::ApiError;
use crate::lease::FenceLost;

/// Why a write was not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Held by a person.
    #[error("{app} is paused: {reason}")]
    Paused {
        /// Which app.
        app: String,
        /// Why.
        reason: String,
    },
    /// The project's rules.
    #[error("{key} is not permitted: {why}")]
    Project {
        /// Which object.
        key: ObjectKey,
        /// Which rule.
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
    /// What is to be sent is not what was judged.
    #[error("the permit is for {permitted}, not for {sent}")]
    OtherObject {
        /// The permit's object.
        permitted: ObjectKey,
        /// What was to be sent.
        sent: String,
    },
    /// Only plumb's own objects are written without a permit.
    #[error("{what} is not one of plumb's own objects")]
    NotOwn {
        /// What was to be sent.
        what: String,
    },
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The gate did not let it through.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// We are not the leader (any more). The outcome of a request that was in flight is not known.
    #[error(transparent)]
    NotLeader(#[from] FenceLost),
    /// The API server did not do it.
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
