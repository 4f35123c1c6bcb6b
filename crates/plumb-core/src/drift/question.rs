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
    /// To [`Question::LiveAt`]: the live object in that version, or `None` if it could not be read.
    pub live_at: Option<Option<&'a Manifest>>,
}

/// The answer of the API server to a dry-run apply.
#[derive(Clone, Copy, Debug)]
pub enum DryRun<'a> {
    /// The object as it would be stored.
    Object(&'a Manifest),
    /// The API server refuses the object.
    Refused(&'a ApiFailure),
    /// There is no answer: no dry-run support, no connection, no permission.
    Unavailable,
}

/// The same commit rendered once more.
#[derive(Clone, Copy, Debug)]
pub enum SecondRender<'a> {
    /// The object in the second render; `None`: the second render does not have it.
    Object(Option<&'a Manifest>),
    /// It could not be rendered again.
    Unavailable,
}

/// What the judge asks if the facts leave a doubt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// A server-side dry-run apply of [`manifest_to_apply`](crate::normalize::manifest_to_apply): manager
    /// `argocd-controller`, forced, `fieldValidation=Ignore` (unknown fields are known from the schema, and must not hide the
    /// answer for the others).
    DryRun,
    /// Render the same commit once more, in another process and at another time.
    SecondRender,
    /// Read the live object in this version (`autoscaling/v1`).
    LiveAt {
        /// The version that Git writes.
        api_version: String,
    },
}
