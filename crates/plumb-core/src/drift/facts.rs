//! What is known about an object without asking the API server or rendering again.

use jiff::{SignedDuration, Timestamp};

use super::{ApiFailure, Finding};
use crate::object::{FieldPath, Manifest, ObjectKey};

/// What the engine knows without asking anybody. `Default` is "nothing special", with `owner: ThisApp`.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The app's name in tracking marks.
    pub app: &'a str,
    /// Whose mark the live object carries.
    pub owner: LiveOwner,
    /// What plumb applied last for this object.
    pub previous: Previous<'a>,
    /// How the last attempt to apply this object ended, if the attempt is known.
    pub attempt: Attempt<'a>,
    /// Does the app's policy delete what leaves Git?
    pub prune: bool,
    /// Other apps that render this object.
    pub claims: &'a [Claim<'a>],
    /// Autoscalers whose target is this object.
    pub autoscalers: &'a [Autoscaler],
    /// Live objects that refer to this one; stated where it is no longer in Git.
    pub users: &'a [ObjectKey],
    /// Mutating webhooks and admission policies whose rules match this object.
    pub mutators: &'a [Mutator],
    /// What self-heal did to this object so far.
    pub heals: &'a [HealRecord],
    /// When a tug of war is called one.
    pub heal_limit: HealLimit,
    /// The run of a Job or hook that is known to have finished.
    pub finished: Option<FinishedRun>,
    /// Could rendering the same commit again give something else? `false` for plain files.
    pub render_may_vary: bool,
    /// The name under which the cluster has (or this rendering asks for) the same object, where each rendering
    /// makes up another one; see [`renamed`](super::renamed).
    pub renamed: Option<&'a str>,
    /// Findings of the verdict before this one: since when it has been so, who was named for a removal, and what somebody
    /// added before our next apply made it look older. They are no part of a verdict's key.
    pub earlier: &'a [Finding],
}

/// Whose tracking mark the live object carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LiveOwner {
    /// This app's.
    #[default]
    ThisApp,
    /// Nobody's.
    Nobody,
    /// Another app's, by its instance name.
    App(String),
}

/// What plumb applied last for this object.
#[derive(Clone, Copy, Debug, Default)]
pub enum Previous<'a> {
    /// It is not known (first look after a start, applied by another engine).
    #[default]
    Unknown,
    /// Exactly what Git asks now.
    Same,
    /// Something else.
    Changed(Option<&'a Manifest>),
    /// Something else, rendered from the very same commit by the same tools: the rendering itself varies.
    Rerendered,
}

/// How the last attempt to apply what Git asks now ended.
#[derive(Clone, Copy, Debug, Default)]
pub enum Attempt<'a> {
    /// There was none, or it is not known.
    #[default]
    None,
    /// The server took it.
    Applied,
    /// The server refused it.
    Refused(&'a ApiFailure),
    /// It failed, and only a text is left of why.
    Failed,
}

/// Another app that renders the same object.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Its instance name.
    pub app: &'a str,
    /// What it asks for.
    pub manifest: Option<&'a Manifest>,
}

/// An autoscaler that targets the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// `HorizontalPodAutoscaler`, `ScaledObject`, `VerticalPodAutoscaler` …
    pub kind: String,
    /// Its name; it lives in the object's namespace.
    pub name: String,
}

/// A webhook or policy that may change objects of this kind when they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutator {
    /// `MutatingAdmissionPolicy` or `MutatingWebhookConfiguration`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What self-heal did to one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealRecord {
    /// Which field.
    pub field: FieldPath,
    /// When it was written back, oldest first.
    pub healed_at: Vec<Timestamp>,
    /// Given up until Git, the rules or the opponent change.
    pub stopped: bool,
}

/// When a tug of war is called one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealLimit {
    /// After so many rounds …
    pub rounds: usize,
    /// … within this time.
    pub window: SignedDuration,
}

impl Default for HealLimit {
    fn default() -> Self {
        Self { rounds: 5, window: SignedDuration::from_mins(10) }
    }
}

/// A run that is known to have finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// When; `None` where nobody was there to see it.
    pub at: Option<Timestamp>,
    /// Well?
    pub succeeded: bool,
    /// Was it made from exactly what Git asks now?
    pub same_desired: bool,
}
