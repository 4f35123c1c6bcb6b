//! What is known about an object without asking the API server or rendering again.

use jiff::{SignedDuration, Timestamp};

use super::{ApiFailure, Finding};
use crate::object::{FieldPath, Manifest, ObjectKey};

/// What is known of a live object that Git does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extraneous {
    /// Does the app's status list the object as one that Git had?
    pub was_in_git: bool,
    /// Is it the destination namespace that the app's options ask for?
    pub is_asked_for: bool,
    /// Did Git say that the object does not make the app `OutOfSync` when Git no longer has it?
    pub is_ignored: bool,
}

/// What the engine knows without asking. `Default` is "nothing special", with `owner: ThisApp`.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The app's name in tracking marks.
    pub app: &'a str,
    /// The app whose tracking mark the live object has.
    pub owner: LiveOwner,
    /// What plumb applied last for this object.
    pub previous: Previous<'a>,
    /// How the last attempt to apply this object ended, if it is known.
    pub attempt: Attempt<'a>,
    /// Does the app's sync policy prune?
    pub prune: bool,
    /// What is known of an object that is no longer in Git.
    pub extraneous: Extraneous,
    /// Other apps that render this object.
    pub claims: &'a [Claim<'a>],
    /// Autoscalers whose target is this object.
    pub autoscalers: &'a [Autoscaler],
    /// Live objects that refer to this one; only for an object that is no longer in Git.
    pub users: &'a [ObjectKey],
    /// Mutating webhooks and admission policies whose rules match this object.
    pub mutators: &'a [Mutator],
    /// What self-heal has restored in this object so far.
    pub heals: &'a [HealRecord],
    /// When repeated heals are a tug of war.
    pub heal_limit: HealLimit,
    /// The run of a Job or hook that is known to have finished.
    pub finished: Option<FinishedRun>,
    /// Can another render of the same commit give another result? `false` for plain files.
    pub render_may_vary: bool,
    /// The name under which the cluster has, or this render asks for, the same object, if each render generates another
    /// name; see [`renamed`](super::renamed).
    pub renamed: Option<&'a str>,
    /// Findings of the previous verdict. They have the time of a difference, the writer of a removal, and additions that look
    /// older than our last apply. They are not part of the verdict's key.
    pub earlier: &'a [Finding],
}

/// The app whose tracking mark the live object has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LiveOwner {
    /// This app.
    #[default]
    ThisApp,
    /// The object has no tracking mark.
    Nobody,
    /// Another app, by its instance name.
    App(String),
}

/// What plumb applied last for this object.
#[derive(Clone, Copy, Debug, Default)]
pub enum Previous<'a> {
    /// It is not known: the first comparison after a start, or another engine applied it.
    #[default]
    Unknown,
    /// Exactly what Git asks for now.
    Same,
    /// Something else; its manifest, if it is known.
    Changed(Option<&'a Manifest>),
    /// Something else, rendered from the same commit by the same tools: the render itself varies.
    Rerendered,
}

/// How the last attempt to apply what Git asks for now ended.
#[derive(Clone, Copy, Debug, Default)]
pub enum Attempt<'a> {
    /// There was none, or it is not known.
    #[default]
    None,
    /// The API server accepted it.
    Applied,
    /// The API server refused it.
    Refused(&'a ApiFailure),
    /// It failed, and only the text of the error is known.
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
    /// Does it scale down to zero replicas? A `HorizontalPodAutoscaler` does only if its minimum is zero.
    pub scales_to_zero: bool,
}

impl Autoscaler {
    /// Does it set the number of replicas? A `VerticalPodAutoscaler` does not.
    pub fn sets_replicas(&self) -> bool {
        self.kind != "VerticalPodAutoscaler"
    }
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
    /// When it was restored, oldest first.
    pub healed_at: Vec<Timestamp>,
    /// Self-heal stops for this field until Git, the ignore rules or the other writer changes.
    pub stopped: bool,
}

/// When repeated heals are a tug of war.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealLimit {
    /// So many heals …
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
    /// When; `None` if plumb did not see the end.
    pub at: Option<Timestamp>,
    /// Did it succeed?
    pub succeeded: bool,
    /// Was it made from exactly what Git asks for now?
    pub same_desired: bool,
}
