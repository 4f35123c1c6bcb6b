//! Gathers what the generators of a set ask for, until they ask for nothing more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use plumb_appset::scm::ScmRules;
use plumb_appset::{
    Follows, Generated, GenerationError, Reason, Settings, Total, follows, generate_within, seed_of_uid,
};
use plumb_crd::ApplicationSet;

use super::answer::{Asker, MOST_BYTES, Trees, answer, too_much};
use super::facts::{Known, Question};
use crate::engine::Engine;
use crate::set_signals::DecisionKind;

/// Answers lead to new questions, but not for ever.
const MOST_ROUNDS: usize = 50;
/// Most questions of one generation.
const MOST_QUESTIONS: usize = 2000;
/// Most questions that are asked at the same time for one set.
const AT_ONCE: usize = 8;
/// How long a generation may wait for answers. Only a few sets generate at the same time.
const DEADLINE: Duration = Duration::from_mins(5);

/// What a set generates, and what it asked.
pub(crate) struct Asked {
    pub(crate) generated: Result<Generated, GenerationError>,
    pub(super) follows: Follows,
    pub(super) clusters: bool,
    pub(super) decisions: BTreeSet<DecisionKind>,
}

/// Generates the Applications of a set. `fetch_since` asks the Git servers again, unless that was done since.
pub(crate) async fn generate_set(
    engine: &Arc<Engine>,
    set: &Arc<ApplicationSet>,
    fetch_since: Option<Instant>,
) -> Asked {
    let settings = engine.config.settings();
    let mut known = Known {
        clusters: engine.set_signals.clusters(),
        projects: projects_for(engine, &set.metadata.namespace),
        namespace: set.metadata.namespace.clone(),
        scm_rules: ScmRules {
            enabled: settings.app_sets.scm_providers,
            allowed: settings.app_sets.allowed_scm_providers.clone(),
            needs_list: set.metadata.namespace != engine.options.namespace,
            strict_tokens: settings.app_sets.strict_token_refs,
        },
        ..Known::default()
    };
    let options = Settings {
        new_git_file_globbing: settings.app_sets.new_git_file_globbing,
        include_hidden_directories: settings.app_sets.include_hidden_directories,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::now(),
        seed: seed_of_uid(&set.metadata.uid),
    };
    let deadline = Instant::now() + DEADLINE;
    let trees = Trees::default();
    let mut steps = options.total.steps;
    let (mut n_questions, mut rounds, mut bytes) = (0, 0, 0);
    let generated = loop {
        let (returned, result, left) = attempt(known, set, &options, steps).await;
        (known, steps) = (returned, left);
        let open: Vec<Question> = std::mem::take(&mut *known.open.borrow_mut()).into_iter().collect();
        let is_open = matches!(&result, Err(error) if error.reason == Reason::Unanswered);
        rounds += 1;
        n_questions += open.len();
        if !is_open {
            break result;
        }
        if open.is_empty() || rounds >= MOST_ROUNDS || n_questions > MOST_QUESTIONS {
            break Err(GenerationError::generation(
                "the generators ask for too many repositories and objects; split the ApplicationSet",
            ));
        }
        let namespace = &set.metadata.namespace;
        let asker = Asker { engine, namespace, fetch_since, trees: &trees };
        if let Err(message) = ask(&asker, &mut known, open, deadline, &mut bytes).await {
            break Err(GenerationError::generation(message));
        }
    };
    let clusters = *known.asked_clusters.borrow();
    let decisions = known.objects.keys().cloned().collect();
    let set = Arc::clone(set);
    let followed = tokio::task::spawn_blocking(move || follows(&set, &known, &options)).await;
    Asked { generated, follows: followed.unwrap_or_default(), clusters, decisions }
}

/// The projects that a set of this namespace may use: those that permit the Applications of the namespace.
fn projects_for(engine: &Engine, namespace: &str) -> BTreeSet<String> {
    let mut names = engine.config.project_names();
    let home = engine.options.namespace.as_str();
    if namespace != home {
        let permits = |name: &String| {
            let project = engine.config.project(name);
            project.is_ok_and(|project| project.permits_app_namespace(namespace, home))
        };
        names.retain(permits);
    }
    names
}

/// Answers the questions of one round, several at a time. `bytes` counts what all rounds read.
async fn ask(
    asker: &Asker<'_>,
    known: &mut Known,
    open: Vec<Question>,
    deadline: Instant,
    bytes: &mut u64,
) -> Result<(), String> {
    let requests = open.into_iter().map(|question| answer(asker, question));
    let mut answers = stream::iter(requests).buffer_unordered(AT_ONCE);
    loop {
        match tokio::time::timeout_at(deadline.into(), answers.next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(answer)) => {
                *bytes += answer.bytes();
                if *bytes > MOST_BYTES {
                    return Err(too_much());
                }
                known.note(answer);
            }
            Err(_) => {
                let minutes = DEADLINE.as_secs() / 60;
                return Err(format!(
                    "the generators have not all answers after {minutes} minutes; a server is slow, or the \
                     ApplicationSet asks for too much and needs to be split"
                ));
            }
        }
    }
}

/// Generates with what is known, and returns the steps that are left. Templates take processor time, so this leaves the
/// thread to others.
async fn attempt(
    known: Known,
    set: &Arc<ApplicationSet>,
    options: &Settings,
    mut steps: u64,
) -> (Known, Result<Generated, GenerationError>, u64) {
    let (set, options) = (Arc::clone(set), options.clone());
    let attempt = tokio::task::spawn_blocking(move || {
        let result = generate_within(&set, &known, &options, &mut steps);
        (known, result, steps)
    });
    attempt.await.unwrap_or_else(|_| {
        let error = "a defect of plumb aborted the generation; nothing is changed";
        (Known::default(), Err(GenerationError::generation(error)), 0)
    })
}
