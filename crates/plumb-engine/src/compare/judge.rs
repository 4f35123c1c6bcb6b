//! Judges the objects of one app: states the facts, and fetches answers only where the core's judge asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use plumb_core::app::CompareOptions;
use plumb_core::desired::{Complete, DesiredObject, DesiredSet};
use plumb_core::drift::{
    Answers, ApiFailure, Autoscaler, Claim, DryRun, Evidence, Extraneous, Facts, FailureCause, Finding,
    FinishedRun, HealLimit, HealRecord, LiveOwner, Mutator, Outcome, Question, SecondRender, Verdict,
    VerdictKey, has_same_content, is_large, judge, renamed,
};
use plumb_core::fields::has_other_writers;
use plumb_core::ignore::IgnoreRules;
use plumb_core::normalize::manifest_to_apply;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::FIELD_MANAGER;
use plumb_core::writes::{LastApply, LastAttempt};
use plumb_kube::{ApiError, ApplyOptions, ClusterClient, FieldValidation};

use crate::apps::claims::Claimant;
use crate::compare::costly_rules::apart;
use crate::compare::verdict_cache::{VerdictBasis, VerdictCache};

/// How many questions are asked at the same time for one app.
const QUESTIONS_AT_ONCE: usize = 8;

/// The core's judge asks each of its three questions at most once per object.
const MOST_ROUNDS: usize = 4;

/// Renders the same commit once more.
pub(crate) type RenderAgain<'a> =
    dyn Fn() -> BoxFuture<'a, Option<Arc<Complete<DesiredSet>>>> + Send + Sync + 'a;

/// What the objects of one app are judged with.
pub(super) struct Judge<'a, 'r> {
    pub(super) instance: &'a str,
    pub(super) client: &'a ClusterClient,
    /// Sends dry runs.
    pub(super) acting: Option<&'a ClusterClient>,
    pub(super) schemas: &'a SchemaSet,
    pub(super) rules: &'a IgnoreRules,
    pub(super) options: CompareOptions,
    pub(super) prune: bool,
    pub(super) heal_limit: HealLimit,
    pub(super) render_may_vary: bool,
    pub(super) dry_runs: DryRunPolicy,
    /// Where a user judges with own rights: set if a dry run was denied for the lack of them.
    pub(super) denied_dry_runs: Option<&'a AtomicBool>,
    pub(super) now: Timestamp,
    /// Hash of the admission configurations.
    pub(super) admission: u64,
    /// Renders the same commit once more; called at most once for all objects.
    pub(super) render_again: &'a RenderAgain<'r>,
}

/// Whether the API server is asked for a dry run where the facts leave a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRunPolicy {
    /// It is asked.
    Ask,
    /// A sync to a new commit follows and writes what Git changed, whatever the answer would be. For objects that only
    /// plumb ever wrote the API server is not asked.
    SyncFollows,
    /// Nothing is asked: whoever looks only reads.
    Never,
}

/// What is known about one object before any question is asked.
#[derive(Default)]
pub(super) struct JudgeInput {
    pub(super) desired: Option<DesiredObject>,
    pub(super) live: Option<Arc<Manifest>>,
    pub(super) owner: LiveOwner,
    pub(super) last_apply: LastApply,
    pub(super) last_attempt: LastAttempt,
    pub(super) claims: Vec<Claimant>,
    pub(super) autoscalers: Vec<Autoscaler>,
    pub(super) users: Vec<ObjectKey>,
    pub(super) mutators: Vec<Mutator>,
    pub(super) heals: Vec<HealRecord>,
    pub(super) finished: Option<FinishedRun>,
    /// What is known of an object that is no longer in Git.
    pub(super) extraneous: Extraneous,
    pub(super) earlier: Arc<[Finding]>,
}

impl JudgeInput {
    /// Did Git change since the last apply, and has nobody but us ever written the object? (Controllers write
    /// through subresources.) Then the next apply makes it what Git asks, and nothing has to be kept or moved.
    fn is_plain_change(&self) -> bool {
        matches!(self.last_apply, LastApply::Changed(_))
            && self.live.as_deref().is_some_and(|live| !has_other_writers(live))
    }
}

/// The answer of the API server; `None` if it could not be asked.
type Answer = Option<Result<Manifest, ApiFailure>>;

/// The same commit rendered once more; `None` if that failed.
type SecondTime = Option<Arc<Complete<DesiredSet>>>;

/// The live object in another version; `None` if it could not be read.
type LiveAt = Option<Manifest>;

/// Answers that were fetched for one object.
#[derive(Default)]
struct Fetched {
    dry_run: Option<Result<Manifest, Option<ApiFailure>>>,
    second_render: Option<SecondTime>,
    live_at: Option<LiveAt>,
}

impl Fetched {
    /// True if every question was answered.
    fn is_complete(&self) -> bool {
        !matches!(self.dry_run, Some(Err(None)))
            && !matches!(self.second_render, Some(None))
            && !matches!(self.live_at, Some(None))
    }
}

impl Judge<'_, '_> {
    /// A verdict for every input. Questions of all objects are asked side by side; an object whose questions
    /// stay open is judged on what there is.
    pub(super) async fn judge_all(
        &self,
        inputs: &BTreeMap<ObjectKey, JudgeInput>,
        kept: &mut VerdictCache,
    ) -> BTreeMap<ObjectKey, Verdict> {
        let mut verdicts = BTreeMap::new();
        let mut fetched: BTreeMap<&ObjectKey, Fetched> = BTreeMap::new();
        let mut open: BTreeSet<&ObjectKey> = inputs.keys().collect();
        let mut second_render: Option<SecondTime> = None;
        let renamed = self.renamed(inputs, &mut second_render).await;
        let mut foundations: BTreeMap<&ObjectKey, VerdictBasis> = BTreeMap::new();
        let user = self.acting_user();
        for (key, input) in inputs {
            let verdict_key = self.with_evidence(key, input, renamed.get(key), None, VerdictKey::of);
            let basis = VerdictBasis::new(&verdict_key, self.admission, user.as_deref());
            if let Some(verdict) = kept.get(key, basis) {
                verdicts.insert(key.clone(), verdict);
                open.remove(key);
            }
            foundations.insert(key, basis);
        }
        for _ in 0..MOST_ROUNDS {
            let mut questions: Vec<(&ObjectKey, &JudgeInput, Question)> = Vec::new();
            for key in std::mem::take(&mut open) {
                let Some(input) = inputs.get(key) else { continue };
                let is_costly =
                    self.rules.are_costly_for(key) || self.with_evidence(key, input, None, None, is_large);
                let judged = || self.with_evidence(key, input, renamed.get(key), fetched.get(key), judge);
                match apart(is_costly, judged).await {
                    Outcome::Settled(verdict) => {
                        let answers = fetched.get(key);
                        // How far a fight over a field has gone depends on the time as well.
                        if answers.is_none_or(Fetched::is_complete)
                            && input.heals.is_empty()
                            && let Some(basis) = foundations.remove(key)
                        {
                            kept.keep(&verdict, basis);
                        }
                        verdicts.insert(key.clone(), *verdict);
                    }
                    Outcome::Ask(asked) => {
                        open.insert(key);
                        questions.extend(asked.into_iter().map(|question| (key, input, question)));
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
            self.fetch(questions, second_render.as_ref(), &mut fetched).await;
        }
        kept.retain(|key| inputs.contains_key(key));
        verdicts
    }

    /// Who asks the API server: an impersonated user, or plumb itself. Where the project names no account, nothing is asked.
    fn acting_user(&self) -> Option<String> {
        let Some(acting) = self.acting else { return Some("none".to_owned()) };
        acting
            .impersonated()
            .map(|impersonation| format!("{} {}", impersonation.user, impersonation.groups.join(" ")))
    }

    /// Fetches the answers to questions of all objects, several at a time.
    async fn fetch<'q>(
        &'q self,
        questions: Vec<(&'q ObjectKey, &'q JudgeInput, Question)>,
        second_render: Option<&SecondTime>,
        fetched: &mut BTreeMap<&'q ObjectKey, Fetched>,
    ) {
        let asked: Vec<BoxFuture<'_, _>> = questions
            .into_iter()
            .map(|(key, input, question)| self.answer(key, input, question).boxed())
            .collect();
        let mut answers = stream::iter(asked).buffer_unordered(QUESTIONS_AT_ONCE);
        while let Some((key, answer, question)) = answers.next().await {
            let slot = fetched.entry(key).or_default();
            match question {
                Question::DryRun => {
                    slot.dry_run = Some(answer.map_or(Err(None), |answer| answer.map_err(Some)));
                }
                Question::SecondRender => slot.second_render = Some(second_render.cloned().flatten()),
                Question::LiveAt { .. } => slot.live_at = Some(answer.and_then(Result::ok)),
            }
        }
    }

    /// Which objects only have another name. The second rendering is requested only if objects of one kind are both missing
    /// and left over.
    async fn renamed(
        &self,
        inputs: &BTreeMap<ObjectKey, JudgeInput>,
        second_render: &mut Option<SecondTime>,
    ) -> BTreeMap<ObjectKey, ObjectKey> {
        if !self.render_may_vary {
            return BTreeMap::new();
        }
        let keys = |is_it: fn(&JudgeInput) -> bool| -> Vec<&ObjectKey> {
            inputs.iter().filter(|(_, input)| is_it(input)).map(|(key, _)| key).collect()
        };
        let missing = keys(|input| input.desired.is_some() && input.live.is_none());
        let left_over = keys(|input| {
            // A stranger's object with this app's mark is no earlier name of one of Git's objects.
            input.desired.is_none() && input.extraneous.was_in_git && input.live.is_some()
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
        let first: BTreeSet<&ObjectKey> =
            inputs.iter().filter(|(_, input)| input.desired.is_some()).map(|(key, _)| key).collect();
        let second = &second.get().objects;
        let mut pairs = renamed(&first, &second.keys().collect(), &missing, &left_over);
        let mut others: BTreeMap<_, Vec<&Manifest>> = BTreeMap::new();
        for (key, object) in second.iter().filter(|(key, _)| !first.contains(key)) {
            let place = (&key.group, &key.kind, &key.namespace);
            others.entry(place).or_default().push(&object.manifest);
        }
        // The name alone is no evidence: the content may have been edited since.
        pairs.retain(|one, other| {
            let desired = [one, other].into_iter().find_map(|key| inputs.get(key)?.desired.as_ref());
            let live = [one, other].into_iter().find_map(|key| inputs.get(key)?.live.as_deref());
            let others = others.get(&(&one.group, &one.kind, &one.namespace));
            let others = others.map(Vec::as_slice).unwrap_or_default();
            desired.zip(live).is_some_and(|(desired, live)| {
                has_same_content(&desired.manifest, live, others, self.schemas)
            })
        });
        pairs
    }

    /// Passes everything that is known about an object to a function.
    fn with_evidence<T>(
        &self,
        key: &ObjectKey,
        input: &JudgeInput,
        renamed: Option<&ObjectKey>,
        fetched: Option<&Fetched>,
        look: impl FnOnce(&Evidence<'_>) -> T,
    ) -> T {
        let others: Vec<Option<Manifest>> = input.claims.iter().map(|other| other.manifest(key)).collect();
        let claims: Vec<Claim<'_>> = input
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
            desired: input.desired.as_ref(),
            live: input.live.as_deref(),
            schemas: self.schemas,
            rules: self.rules,
            options: self.options,
            facts: Facts {
                app: self.instance,
                owner: input.owner.clone(),
                previous: input.last_apply.as_fact(),
                attempt: input.last_attempt.as_fact(),
                prune: self.prune,
                extraneous: input.extraneous,
                claims: &claims,
                autoscalers: &input.autoscalers,
                users: &input.users,
                mutators: &input.mutators,
                heals: &input.heals,
                heal_limit: self.heal_limit,
                finished: input.finished,
                render_may_vary: self.render_may_vary,
                renamed: renamed.map(|other| other.name.as_str()),
                earlier: &input.earlier,
            },
            answers,
            now: self.now,
        })
    }

    async fn answer<'q>(
        &'q self,
        key: &'q ObjectKey,
        input: &'q JudgeInput,
        question: Question,
    ) -> (&'q ObjectKey, Answer, Question) {
        let answer = self.ask(key, input, &question).await;
        (key, answer, question)
    }

    /// Asks the API server. `None` if it could not be asked.
    async fn ask(&self, key: &ObjectKey, input: &JudgeInput, question: &Question) -> Answer {
        match question {
            Question::DryRun if self.dry_runs == DryRunPolicy::Never => None,
            Question::DryRun if self.dry_runs == DryRunPolicy::SyncFollows && input.is_plain_change() => None,
            Question::DryRun => {
                let manifest = manifest_to_apply(&input.desired.as_ref()?.manifest, self.schemas);
                let options = ApplyOptions {
                    field_manager: FIELD_MANAGER.to_owned(),
                    force: true,
                    field_validation: FieldValidation::Ignore,
                    subresource: None,
                };
                match self.acting?.dry_run_apply(&manifest, &options).await {
                    Ok(applied) => Some(Ok(applied.manifest)),
                    Err(error) => match self.denied_dry_runs.filter(|_| is_lack_of_rights(&error)) {
                        Some(denied) => {
                            denied.store(true, Ordering::Relaxed);
                            None
                        }
                        None => failure(&error).map(Err),
                    },
                }
            }
            // The caller answers it for all objects at once.
            Question::SecondRender => None,
            Question::LiveAt { api_version } => {
                let gvk = GroupVersionKind::from_api_version(api_version, &key.kind);
                self.client.get_at(&gvk, key.namespace.as_deref(), &key.name).await.ok().flatten().map(Ok)
            }
        }
    }
}

/// Does whoever asks have no right to change the object? That says nothing about the object. Admission denies with the same
/// code, but not in the words of the authorizer.
fn is_lack_of_rights(error: &ApiError) -> bool {
    error.status().is_some_and(|status| {
        let by_authorizer = || {
            let why = status.message.split_once(" is forbidden: ").map(|(_, why)| why);
            // A role may only grant what its author may do: `user "…" is attempting to grant …`.
            why.is_some_and(|why| why.starts_with("User \"") || why.starts_with("user \""))
        };
        status.code == 401 || (status.code == 403 && by_authorizer())
    })
}

/// The API server's refusal, if it was one. A failure on the way to the server says nothing about the object.
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
    use plumb_kube::{Reason, Status};

    #[test]
    fn a_denial_of_the_authorizer_is_no_refusal_of_the_object() {
        let refused = |code, message: &str| ApiError::Refused {
            request: "PATCH".to_owned(),
            status: Box::new(Status {
                code,
                reason: Reason::Forbidden,
                message: message.to_owned(),
                causes: Vec::new(),
                retry_after: None,
            }),
        };
        for (code, message, expected) in [
            (
                403,
                "deployments.apps \"web\" is forbidden: User \"me\" cannot patch resource \"deployments\"",
                true,
            ),
            (
                403,
                "roles \"a\" is forbidden: user \"me\" (groups=[]) is attempting to grant RBAC permissions",
                true,
            ),
            (401, "Unauthorized", true),
            (403, "pods \"web\" is forbidden: exceeded quota: small", false),
            (403, "admission webhook \"a\" denied the request: User \"me\" cannot", false),
            (422, "Deployment.apps \"web\" is invalid", false),
        ] {
            assert_eq!(is_lack_of_rights(&refused(code, message)), expected, "{message}");
        }
    }

    #[test]
    fn a_mistyped_value_is_a_refusal_that_names_the_field() {
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
