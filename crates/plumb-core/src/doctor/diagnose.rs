//! The four blocks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{AppFacts, Group, Illness, PauseFact, Place, StatusOf, Unjudged};
use crate::app::AppId;
use crate::drift::{DriftClass, Finding};
use crate::object::ObjectKey;

/// A health that has lasted this long is not a hiccup.
const TOO_LONG: SignedDuration = SignedDuration::from_mins(5);
/// A pause that ends within this time is worth a line.
const ENDS_SOON: SignedDuration = SignedDuration::from_hours(24);

/// What a user wants to see; an empty list means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these classes. Illnesses and pauses have none, and are left out then.
    pub classes: Vec<DriftClass>,
    /// Only objects of these kinds, in any case.
    pub kinds: Vec<String>,
    /// Only these apps, as `name` or `namespace/name`.
    pub apps: Vec<String>,
    /// Only apps of these projects.
    pub projects: Vec<String>,
}

/// What to look at, worst first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// How many apps were looked at.
    pub n_apps: usize,
    /// What is ill, and has been for too long. Crash loops first, then the longest.
    pub ill: Vec<Illness>,
    /// Differences that count, the most severe class first.
    pub wrong: Vec<Group>,
    /// Objects that a status shows as `OutOfSync` although nothing is wrong with them.
    pub harmless: Vec<Group>,
    /// Objects that Argo CD shows as `OutOfSync`, and in which plumb finds no difference at all.
    pub unexplained: Vec<(AppId, ObjectKey)>,
    /// Apps without a verdict of plumb that need one.
    pub unjudged: Vec<Unjudged>,
    /// Objects that Git no longer has.
    pub orphans: Vec<Group>,
    /// Values that differ in each render.
    pub unstable: Vec<Group>,
    /// Secrets that Git has with their values.
    pub plain_secrets: Vec<(AppId, ObjectKey)>,
    /// Pauses that end soon, or never.
    pub pauses: Vec<(AppId, PauseFact)>,
    /// How many further differences mean nothing, and show nowhere.
    pub n_quiet: usize,
}

impl Diagnosis {
    /// Does a user have to act?
    pub fn is_bad(&self) -> bool {
        let mut orphans = self.orphans.iter().flat_map(|group| &group.places);
        !self.ill.is_empty()
            || !self.wrong.is_empty()
            || !self.unjudged.is_empty()
            || orphans.any(|place| place.finding.counts)
    }
}

/// Sorts what is known about all apps into the blocks.
pub fn diagnose(apps: &[AppFacts], filter: &Filter, now: Timestamp) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let mut groups = Groups::new();
    for facts in apps.iter().filter(|facts| filter.has_app(facts)) {
        diagnosis.n_apps += 1;
        diagnosis.ill.extend(illnesses(facts, filter, now));
        let pauses =
            facts.pauses.iter().filter(|pause| filter.classes.is_empty() && is_worth_a_line(pause, now));
        diagnosis.pauses.extend(pauses.map(|pause| (facts.app.clone(), pause.clone())));
        diagnosis.unjudged.extend(unjudged(facts, filter));
        let unexplained = unexplained(facts, filter);
        diagnosis.unexplained.extend(unexplained.map(|key| (facts.app.clone(), key.clone())));
        let secrets = facts.plain_secrets.iter();
        let secrets = secrets.filter(|key| filter.classes.is_empty() && filter.has_kind(&key.kind));
        diagnosis.plain_secrets.extend(secrets.map(|key| (facts.app.clone(), key.clone())));
        diagnosis.n_quiet += sort_findings(facts, filter, &mut groups);
    }
    for ((block, _, class, kind), mut places) in groups {
        places.sort_by(|one, other| (&one.app, &one.finding.key).cmp(&(&other.app, &other.finding.key)));
        let group = Group { class, kind, places };
        match block {
            Block::Wrong => diagnosis.wrong.push(group),
            Block::Harmless => diagnosis.harmless.push(group),
            Block::Orphans => diagnosis.orphans.push(group),
            Block::Unstable => diagnosis.unstable.push(group),
        }
    }
    diagnosis.unjudged.sort();
    diagnosis.unexplained.sort();
    diagnosis.plain_secrets.sort();
    diagnosis.ill.sort_by_cached_key(|illness| {
        // A status that waits for a user can be months old; a crash loop must not be below it. What has no known start
        // comes last; among equals the worse status comes first.
        let since = illness.since.unwrap_or(Timestamp::MAX);
        (!illness.is_crash_loop(), since, rank(&illness.status), illness.app.clone(), illness.key.clone())
    });
    diagnosis.pauses.sort_by_cached_key(|(app, pause)| {
        (pause.until.unwrap_or(Timestamp::MAX), app.clone(), pause.key.clone())
    });
    diagnosis
}

/// Findings by block, severity (the worst first), class and kind.
type Groups = BTreeMap<(Block, u8, DriftClass, String), Vec<Place>>;

/// Sorts the findings of one app into the groups. Returns how many mean nothing, and show nowhere.
fn sort_findings(facts: &AppFacts, filter: &Filter, groups: &mut Groups) -> usize {
    let wrong: BTreeSet<&ObjectKey> =
        facts.findings.iter().filter(|finding| finding.counts).map(|finding| &finding.key).collect();
    let is_wanted =
        |finding: &&Finding| filter.has_class(finding.class) && filter.has_kind(&finding.key.kind);
    let mut n_quiet = 0;
    for finding in facts.findings.iter().filter(is_wanted) {
        let is_red = facts.red.contains(&finding.key);
        // An object that is red for a good reason is not red for nothing.
        let has_reason = is_red && wrong.contains(&finding.key);
        let Some(block) = block(finding.class, finding.counts, is_red && !has_reason) else {
            n_quiet += 1;
            continue;
        };
        let key = (block, u8::MAX - finding.class.severity(), finding.class, finding.key.kind.clone());
        let (app, finding) = (facts.app.clone(), finding.clone());
        groups.entry(key).or_default().push(Place { app, finding, is_red, status_of: facts.status_of });
    }
    n_quiet
}

/// An app without a verdict, if its status is not green or nothing could be found out about it.
fn unjudged(facts: &AppFacts, filter: &Filter) -> Option<Unjudged> {
    if !filter.classes.is_empty() || (facts.is_judged && facts.problem.is_none()) {
        return None;
    }
    let is_shown = |key: &&ObjectKey| !facts.is_judged && filter.has_kind(&key.kind);
    let red: Vec<ObjectKey> = facts.red.iter().filter(is_shown).cloned().collect();
    let problem = facts.problem.clone().filter(|_| filter.kinds.is_empty());
    (!red.is_empty() || problem.is_some()).then(|| Unjudged { app: facts.app.clone(), red, problem })
}

/// What Argo CD shows as `OutOfSync` although plumb compared it, and found nothing. An object that could not be read is named
/// in the problem.
fn unexplained<'facts>(
    facts: &'facts AppFacts,
    filter: &'facts Filter,
) -> impl Iterator<Item = &'facts ObjectKey> {
    let found: BTreeSet<&ObjectKey> = facts.findings.iter().map(|finding| &finding.key).collect();
    let is_compared = facts.is_judged && facts.status_of == StatusOf::ArgoCd && filter.classes.is_empty();
    let is_unread =
        |key: &ObjectKey| facts.problem.as_ref().is_some_and(|problem| problem.contains(&key.to_string()));
    facts.red.iter().filter(move |key| {
        is_compared && filter.has_kind(&key.kind) && !found.contains(key) && !is_unread(key)
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Wrong,
    Harmless,
    Orphans,
    Unstable,
}

/// Where a finding is shown; `None` if it means nothing and shows nowhere.
fn block(class: DriftClass, counts: bool, is_red: bool) -> Option<Block> {
    match class {
        DriftClass::Orphan => Some(Block::Orphans),
        _ if counts => Some(Block::Wrong),
        DriftClass::UnstableRender if !is_red => Some(Block::Unstable),
        _ if is_red => Some(Block::Harmless),
        _ => None,
    }
}

fn illnesses<'facts>(
    facts: &'facts AppFacts,
    filter: &'facts Filter,
    now: Timestamp,
) -> impl Iterator<Item = Illness> + 'facts {
    // An object that makes progress is not ill until it is stuck; any other state is after a while. A container that
    // crashes again and again makes no progress.
    let is_too_long =
        move |since: Option<Timestamp>| since.is_none_or(|since| now.duration_since(since) >= TOO_LONG);
    let ill = facts.unhealthy.iter().filter(move |object| {
        object.is_stuck
            || object.is_crash_loop()
            || (object.status != "Progressing" && object.status != "Suspended" && is_too_long(object.since))
    });
    let shown = ill.filter(|object| filter.classes.is_empty() && filter.has_kind(&object.key.kind));
    shown.map(|object| Illness {
        app: facts.app.clone(),
        key: object.key.clone(),
        status: object.status.clone(),
        since: object.since,
        is_stuck: object.is_stuck,
        causes: object.causes.clone(),
    })
}

fn rank(status: &str) -> u8 {
    match status {
        "Degraded" => 0,
        "Missing" => 1,
        "Progressing" => 2,
        _ => 3,
    }
}

fn is_worth_a_line(pause: &PauseFact, now: Timestamp) -> bool {
    pause.until.is_none_or(|until| until.duration_since(now) <= ENDS_SOON)
}

impl Filter {
    fn has_class(&self, class: DriftClass) -> bool {
        self.classes.is_empty() || self.classes.contains(&class)
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted.eq_ignore_ascii_case(kind))
    }

    /// Does it let this app pass?
    pub fn has_app(&self, facts: &AppFacts) -> bool {
        let AppId { namespace, name } = &facts.app;
        let is_named = |wanted: &String| match wanted.split_once('/') {
            Some((in_namespace, wanted)) => in_namespace == namespace && wanted == name,
            None => wanted == name,
        };
        (self.apps.is_empty() || self.apps.iter().any(is_named))
            && (self.projects.is_empty() || self.projects.contains(&facts.project))
    }
}
