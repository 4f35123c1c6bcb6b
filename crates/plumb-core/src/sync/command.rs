//! What the executor is asked to do, and what it answers.

use crate::desired::Propagation;
use crate::plan::{HowToApply, Payload, StepId};

/// One request to the executor. Commands of one [`super::Transition`] may all run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// For which step; the outcome carries it back.
    pub id: StepId,
    /// What to do.
    pub verb: Verb,
}

/// What to do. Every verb may be repeated after a crash without harm.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Write the desired object of this key.
    Apply {
        /// With which kind of request.
        how: HowToApply,
        /// Are unknown fields an error?
        strict: bool,
        /// Take fields over from client-side apply first.
        migrate: bool,
        /// Try it only.
        dry_run: bool,
    },
    /// Write this manifest: a hook, or the destination namespace.
    ApplyManifest {
        /// As it is sent.
        manifest: Payload,
        /// With which kind of request.
        how: HowToApply,
        /// Are unknown fields an error?
        strict: bool,
        /// Try it only.
        dry_run: bool,
    },
    /// Store the tombstone, then delete. An object that is gone already is a success.
    Prune {
        /// Only this incarnation.
        uid: Option<String>,
        /// What happens to its children.
        propagation: Propagation,
    },
    /// Remove the hook finalizer, then delete the hook's object. No tombstone: hooks come from Git.
    DeleteHook {
        /// Only this incarnation.
        uid: Option<String>,
        /// What happens to its children.
        propagation: Propagation,
    },
    /// Remove the hook finalizer of a hook whose end was recorded.
    ReleaseHook,
}

/// What the executor answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutcome {
    /// Which step.
    pub id: StepId,
    /// How it went; an error is in words, for the object's result.
    pub result: Result<Success, String>,
}

/// A command that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Success {
    /// What happened, as kubectl says it: `deployment.apps/web created`.
    pub message: String,
    /// Images of the object's pods, for the result.
    pub images: Vec<String>,
}
