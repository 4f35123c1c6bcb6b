//! Judging the objects of one app: states the facts at hand, fetches answers only where the judge asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use plumb_core::app::CompareOptions;
use plumb_core::desired::{Complete, DesiredObject, DesiredSet, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, Attempt, Autoscaler, Claim, DryRun, Evidence, Facts, FailureCause, Finding,
    FinishedRun, HealLimit, HealRecord, LiveOwner, Mutator, Outcome, Previous, Question, SecondRender,
    Verdict, VerdictKey, judge, renamed,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::normalize::manifest_to_apply;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::FIELD_MANAGER;
use plumb_kube::{ApiError, ApplyOptions, ClusterClient, FieldValidation};

use crate::apps::claims::Rendered;
use crate::compare::verdict_cache::{Basis, Verdicts};

/// How many questions are asked at the same time for one app.
const QUESTIONS_AT_ONCE: usize = 8;

/// The judge never asks twice for the same thing, and there are three things to ask for.
const MOST_ROUNDS: usize = 4;

/// Renders the same commit once more.
pub(crate) type RenderAgain<'a> =
    dyn Fn() -> BoxFuture<'a, Option<Arc<Complete<DesiredSet>>>> + Send + Sync + 'a;

/// What one app's objects are judged by.
pub(crate) struct Bench<'a, 'r> {
    pub(crate) instance: &'a str,
    pub(crate) client: &'a ClusterClient,
    pub(crate) schemas: &'a SchemaSet,
    pub(crate) rules: &'a IgnoreRules,
    pub(crate) options: CompareOptions,
    pub(crate) prune: bool,
    pub(crate) heal_limit: HealLimit,
    pub(crate) render_may_vary: bool,
    pub(crate) doubt: Doubt,
    pub(crate) now: Timestamp,
    /// Which admission configurations there are, as one number.
    pub(crate) admission: u64,
    /// Renders the same commit once more; asked at most once for all objects.
    pub(crate) render_again: &'a RenderAgain<'r>,
}

/// What to do where the facts at hand leave a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Ask.
    Ask,
    /// A sync to a new commit follows right after and writes what Git changed, whatever the answer would be:
    /// where nobody else ever wrote the object, the server is not asked.
    SyncFollows,
}

/// What is known about one object before anything is asked.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) desired: Option<DesiredObject>,
    pub(crate) live: Option<Arc<Manifest>>,
    pub(crate) owner: LiveOwner,
    pub(crate) previous: PreviousApply,
    pub(crate) attempt: PastAttempt,
    pub(crate) claims: Vec<Rendered>,
    pub(crate) autoscalers: Vec<Autoscaler>,
    pub(crate) users: Vec<ObjectKey>,
    pub(crate) mutators: Vec<Mutator>,
    pub(crate) heals: Vec<HealRecord>,
    pub(crate) finished: Option<FinishedRun>,
    pub(crate) earlier: Arc<[Finding]>,
}

impl Case {
    /// Did Git change since the last apply, and has nobody but us ever written the object? (Controllers write
    /// through subresources.) Then the next apply makes it what Git asks, and nothing has to be kept or moved.
    fn is_plain_change(&self) -> bool {
        matches!(self.previous, PreviousApply::Changed(_))
            && self.live.as_deref().is_some_and(|live| !has_other_writers(live))
    }
}

/// Has anybody but us written the object, as far as is known, and not through a subresource?
pub(crate) fn has_other_writers(live: &Manifest) -> bool {
    let managers = live.value().pointer("/metadata/managedFields").and_then(serde_json::Value::as_array);
    managers.is_none_or(|entries| {
        entries.iter().any(|entry| {
            entry["subresource"].as_str().is_none_or(str::is_empty)
                && !(entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply")
        })
    })
}

/// What plumb applied last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum PreviousApply {
    #[default]
    Unknown,
    Same,
    /// Something else: what, if it is known.
    Changed(Option<Box<Manifest>>),
    /// From the same commit, by the same tools, and yet something else.
    Rerendered,
}

/// How the last try to apply what Git asks now ended.
#[derive(Clone, Debug, Default)]
pub(crate) enum PastAttempt {
    #[default]
    None,
    Applied,
    Refused(ApiFailure),
    Failed,
}

/// What the outside said; `None`: it could not be asked.
type Answer = Option<Result<Manifest, ApiFailure>>;

/// The same commit rendered once more; `None`: it could not be.
type SecondTime = Option<Arc<Complete<DesiredSet>>>;

/// The live object in another version; `None`: it could not be had.
type LiveAt = Option<Manifest>;

/// Answers that were fetched for one object.
#[derive(Default)]
struct Fetched {
    dry_run: Option<Result<Manifest, Option<ApiFailure>>>,
    second_render: Option<SecondTime>,
    live_at: Option<LiveAt>,
}

impl Fetched {
    /// Could everything be asked that was to be asked?
    fn is_complete(&self) -> bool {
        !matches!(self.dry_run, Some(Err(None)))
            && !matches!(self.second_render, Some(None))
            && !matches!(self.live_at, Some(None))
    }
}

impl Bench<'_, '_> {
    /// A verdict for every case. Questions of all objects are asked side by side; an object whose questions
    /// stay open is judged on what there is.
    pub(crate) async fn judge_all(
        &self,
        cases: &BTreeMap<ObjectKey, Case>,
        kept: &mut Verdicts,
    ) -> BTreeMap<ObjectKey, Verdict> {
        let mut verdicts = BTreeMap::new();
        let mut fetched: BTreeMap<&ObjectKey, Fetched> = BTreeMap::new();
        let mut open: BTreeSet<&ObjectKey> = cases.keys().collect();
        let mut second_render: Option<SecondTime> = None;
        let renamed = self.renamed(cases, &mut second_render).await;
        let mut foundations: BTreeMap<&ObjectKey, Basis> = BTreeMap::new();
        for (key, case) in cases {
            let verdict_key = self.with_evidence(key, case, renamed.get(key), None, VerdictKey::of);
            let basis = Basis::new(&verdict_key, self.admission);
            if let Some(verdict) = kept.get(key, basis) {
                verdicts.insert(key.clone(), verdict);
                open.remove(key);
            }
            foundations.insert(key, basis);
        }
        for _ in 0..MOST_ROUNDS {
            let mut questions: Vec<(&ObjectKey, &Case, Question)> = Vec::new();
            for key in std::mem::take(&mut open) {
                let Some(case) = cases.get(key) else { continue };
                match self.with_evidence(key, case, renamed.get(key), fetched.get(key), judge) {
                    Outcome::Settled(verdict) => {
                        let answers = fetched.get(key);
                        // How a fight stands depends on the time as well.
                        if answers.is_none_or(Fetched::is_complete)
                            && case.heals.is_empty()
                            && let Some(basis) = foundations.remove(key)
                        {
                            kept.keep(&verdict, basis, answers.is_some());
                        }
                        verdicts.insert(key.clone(), *verdict);
                    }
                    Outcome::Ask(asked) => {
                        open.insert(key);
                        questions.extend(asked.into_iter().map(|question| (key, case, question)));
                    }
                }
            }
            if questions.is_empty() {
                break;
            }
            if second_render.is_none()
                && questions.iter().any(|(_, _, question)| *question == Question::SecondRender)
            {
                second_render = Some((self.render_again)().await);
            }
            let asked: Vec<BoxFuture<'_, _>> = questions
                .into_iter()
                .map(|(key, case, question)| self.answer(key, case, question).boxed())
                .collect();
            let mut answers = stream::iter(asked).buffer_unordered(QUESTIONS_AT_ONCE);
            while let Some((key, answer, question)) = answers.next().await {
                let slot = fetched.entry(key).or_default();
                match question {
                    Question::DryRun => {
                        slot.dry_run = Some(answer.map_or(Err(None), |answer| answer.map_err(Some)));
                    }
                    Question::SecondRender => slot.second_render = Some(second_render.clone().flatten()),
                    Question::LiveAt { .. } => slot.live_at = Some(answer.and_then(Result::ok)),
                }
            }
        }
        kept.retain(|key| cases.contains_key(key));
        verdicts
    }

    /// Which objects are only called otherwise. The second render is asked for only where something of one kind
    /// is both missing and left over.
    async fn renamed(
        &self,
        cases: &BTreeMap<ObjectKey, Case>,
        second_render: &mut Option<SecondTime>,
    ) -> BTreeMap<ObjectKey, ObjectKey> {
        if !self.render_may_vary {
            return BTreeMap::new();
        }
        let keys = |is_it: fn(&Case) -> bool| -> Vec<&ObjectKey> {
            cases.iter().filter(|(_, case)| is_it(case)).map(|(key, _)| key).collect()
        };
        let missing = keys(|case| case.desired.is_some() && case.live.is_none());
        let left_over = keys(|case| {
            let is_object = |live: &Arc<Manifest>| !ObjectOptions::parse(live).is_hook;
            case.desired.is_none() && case.live.as_ref().is_some_and(is_object)
        });
        let is_likely = missing.iter().any(|missing| {
            left_over
                .iter()
                .any(|left| left.group_kind() == missing.group_kind() && left.namespace == missing.namespace)
        });
        if !is_likely {
            return BTreeMap::new();
        }
        let second = second_render.insert((self.render_again)().await);
        let Some(second) = second.as_deref() else { return BTreeMap::new() };
        let first = cases.iter().filter(|(_, case)| case.desired.is_some()).map(|(key, _)| key).collect();
        renamed(&first, &second.get().objects.keys().collect(), &missing, &left_over)
    }

    /// Everything that is known about an object, for whoever wants to look at it.
    fn with_evidence<T>(
        &self,
        key: &ObjectKey,
        case: &Case,
        renamed: Option<&ObjectKey>,
        fetched: Option<&Fetched>,
        look: impl FnOnce(&Evidence<'_>) -> T,
    ) -> T {
        let others: Vec<Option<Manifest>> = case.claims.iter().map(|other| other.manifest(key)).collect();
        let claims: Vec<Claim<'_>> = case
            .claims
            .iter()
            .zip(&others)
            .map(|(other, manifest)| Claim { app: &other.instance, manifest: manifest.as_ref() })
            .collect();
        let second = fetched.and_then(|fetched| fetched.second_render.as_ref());
        let answers = Answers {
            dry_run: fetched.and_then(|fetched| fetched.dry_run.as_ref()).map(|answer| match answer {
                Ok(manifest) => DryRun::Object(manifest),
                Err(Some(failure)) => DryRun::Refused(failure),
                Err(None) => DryRun::Unavailable,
            }),
            second_render: second.map(|set| match set {
                Some(set) => SecondRender::Object(set.get().objects.get(key).map(|object| &object.manifest)),
                None => SecondRender::Unavailable,
            }),
            live_at: fetched.and_then(|fetched| fetched.live_at.as_ref()).map(Option::as_ref),
        };
        look(&Evidence {
            key,
            desired: case.desired.as_ref(),
            live: case.live.as_deref(),
            schemas: self.schemas,
            rules: self.rules,
            options: self.options,
            facts: Facts {
                app: self.instance,
                owner: case.owner.clone(),
                previous: match &case.previous {
                    PreviousApply::Unknown => Previous::Unknown,
                    PreviousApply::Same => Previous::Same,
                    PreviousApply::Changed(previous) => Previous::Changed(previous.as_deref()),
                    PreviousApply::Rerendered => Previous::Rerendered,
                },
                attempt: match &case.attempt {
                    PastAttempt::None => Attempt::None,
                    PastAttempt::Applied => Attempt::Applied,
                    PastAttempt::Refused(failure) => Attempt::Refused(failure),
                    PastAttempt::Failed => Attempt::Failed,
                },
                prune: self.prune,
                claims: &claims,
                autoscalers: &case.autoscalers,
                users: &case.users,
                mutators: &case.mutators,
                heals: &case.heals,
                heal_limit: self.heal_limit,
                finished: case.finished,
                render_may_vary: self.render_may_vary,
                renamed: renamed.map(|other| other.name.as_str()),
                earlier: &case.earlier,
            },
            answers,
            now: self.now,
        })
    }

    async fn answer<'q>(
        &'q self,
        key: &'q ObjectKey,
        case: &'q Case,
        question: Question,
    ) -> (&'q ObjectKey, Answer, Question) {
        let answer = self.ask(key, case, &question).await;
        (key, answer, question)
    }

    /// Asks the outside. `None`: it could not be asked.
    async fn ask(&self, key: &ObjectKey, case: &Case, question: &Question) -> Answer {
        match question {
            Question::DryRun if self.doubt == Doubt::SyncFollows && case.is_plain_change() => None,
            Question::DryRun => {
                let manifest = manifest_to_apply(&case.desired.as_ref()?.manifest, self.schemas);
                let options = ApplyOptions {
                    field_manager: FIELD_MANAGER.to_owned(),
                    force: true,
                    field_validation: FieldValidation::Ignore,
                    subresource: None,
                };
                match self.client.dry_run_apply(&manifest, &options).await {
                    Ok(applied) => Some(Ok(applied.manifest)),
                    Err(error) => failure(&error).map(Err),
                }
            }
            // Answered for all objects at once by the caller.
            Question::SecondRender => None,
            Question::LiveAt { api_version } => {
                let gvk = GroupVersionKind::from_api_version(api_version, &key.kind);
                self.client.get_at(&gvk, key.namespace.as_deref(), &key.name).await.ok().flatten().map(Ok)
            }
        }
    }
}

/// The server's refusal, if it was one: trouble on the way to the server says nothing about the object.
pub(crate) fn failure(error: &ApiError) -> Option<ApiFailure> {
    let status = error.status()?;
    if status.is_schema_violation() {
        return Some(ApiFailure::mistyped(&status.message));
    }
    if status.code >= 500 || status.code == 429 {
        return None;
    }
    Some(ApiFailure {
        code: status.code,
        reason: status.reason.to_string(),
        message: status.message.clone(),
        causes: status
            .causes
            .iter()
            .map(|cause| FailureCause {
                reason: cause.kind.clone(),
                message: cause.message.clone(),
                field: cause.field.clone(),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_value_is_the_manifests_fault_and_has_a_place() {
        let failure = ApiFailure::mistyped(
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n  \
             .spec.replicas: expected numeric (int or float), got string\n  \
             .spec.template.spec.containers[name=\"c\"].image: expected string, got 3",
        );
        assert_eq!(failure.code, 422);
        let fields: Vec<&str> = failure.causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["spec.replicas", "spec.template.spec.containers[name=\"c\"].image"]);
        assert_eq!(failure.causes[0].message, "expected numeric (int or float), got string");
    }
}
