//! What a verdict is made of: facts that the engine has at hand, and answers that it fetches only when asked.

use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::app::CompareOptions;
use crate::desired::DesiredObject;
use crate::ignore::IgnoreRules;
use crate::object::{FieldPath, Manifest, ObjectKey};
use crate::schema::SchemaSet;

/// Everything that [`judge`](super::judge) looks at. It borrows: gathering it costs nothing in the steady
/// state.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Which object.
    pub key: &'a ObjectKey,
    /// What Git asks; `None`: nothing (any more).
    pub desired: Option<&'a DesiredObject>,
    /// What the cluster holds, with its `managedFields`; `None`: nothing.
    pub live: Option<&'a Manifest>,
    /// The cluster's own schemas.
    pub schemas: &'a SchemaSet,
    /// The rules of the app and of the settings, compiled once.
    pub rules: &'a IgnoreRules,
    /// Compare options of the Application; those of the object are added by the judge.
    pub options: CompareOptions,
    /// What the engine knows without asking anybody.
    pub facts: Facts<'a>,
    /// What it asked for.
    pub answers: Answers<'a>,
    /// The time of the judgement.
    pub now: Timestamp,
}

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

/// A refusal of the API server (`Status` with `status: Failure`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP code.
    pub code: u16,
    /// `Invalid`, `Conflict`, `NotFound` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// `details.causes`.
    pub causes: Vec<FailureCause>,
}

impl ApiFailure {
    /// A value of the wrong type, which the server reports as an internal error with the fields in its text:
    /// `failed to create typed patch object (ns/name; apps/v1, Kind=Deployment): .spec.replicas: expected …`.
    pub fn mistyped(message: &str) -> Self {
        let details = message.split_once("): ").map_or(message, |(_, details)| details);
        let causes = details
            .lines()
            .filter_map(|line| {
                let (field, problem) = line.trim().strip_prefix('.')?.split_once(": ")?;
                Some(FailureCause {
                    reason: "FieldValueTypeInvalid".to_owned(),
                    message: problem.to_owned(),
                    field: field.to_owned(),
                })
            })
            .collect();
        Self { code: 422, reason: "Invalid".to_owned(), message: message.to_owned(), causes }
    }

    /// Does the server refuse the object, rather than being too busy or broken to look at it? A webhook denies
    /// with a code of its choice, 404 and 409 too.
    pub(super) fn is_final(&self) -> bool {
        (400..500).contains(&self.code) && self.code != 429 && !self.is_of_surroundings()
    }

    /// Is it that something around the object is not there yet (its namespace, its kind), or just came, or that the
    /// object changed in the meantime? A sync brings that about, or another look.
    fn is_of_surroundings(&self) -> bool {
        matches!(self.code, 404 | 409) && !self.message.contains("denied the request")
    }
}

/// One `details.causes` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCause {
    /// `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueDuplicate` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// Where, as the server writes it: `spec.template.spec.containers[0].image`.
    pub field: String,
}
