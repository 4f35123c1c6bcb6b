//! What the judge asks when the facts leave a doubt, and the answers.

use crate::object::Manifest;

use super::ApiFailure;

/// The answers to [`Question`]s; empty at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers<'a> {
    /// To [`Question::DryRun`].
    pub dry_run: Option<DryRun<'a>>,
    /// To [`Question::SecondRender`].
    pub second_render: Option<SecondRender<'a>>,
    /// To [`Question::LiveAt`]: the live object in that version, or `None` if it could not be had.
    pub live_at: Option<Option<&'a Manifest>>,
}

/// What the server said to a dry-run apply.
#[derive(Clone, Copy, Debug)]
pub enum DryRun<'a> {
    /// It would make this of the object.
    Object(&'a Manifest),
    /// It refuses.
    Refused(&'a ApiFailure),
    /// It could not be asked (no dry-run support, no connection, not allowed).
    Unavailable,
}

/// The same commit rendered once more.
#[derive(Clone, Copy, Debug)]
pub enum SecondRender<'a> {
    /// The object as the second render has it; `None`: the second render does not have it.
    Object(Option<&'a Manifest>),
    /// It could not be rendered again.
    Unavailable,
}

/// What only the outside can tell, asked when the facts at hand leave a doubt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// A server-side dry-run apply of [`manifest_to_apply`](crate::normalize::manifest_to_apply): manager
    /// `argocd-controller`, forced, `fieldValidation=Ignore` (unknown fields are known from the schema, and
    /// must not hide the answer on the others).
    DryRun,
    /// Render the same commit once more, in another process, at another time.
    SecondRender,
    /// Read the live object in this version (`autoscaling/v1`).
    LiveAt {
        /// The version that Git writes.
        api_version: String,
    },
}
