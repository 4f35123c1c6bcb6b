//! From explained differences to findings: one per class, bounded, those that count first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::classes;
use super::explained::Explained;
use super::fix_patch::fix_patch;
use super::{DriftClass, Evidence, Finding, Fix};
use crate::object::FieldPath;

/// Most fields that one finding names.
const MAX_FIELDS: usize = 100;
/// Most sentences of evidence in one finding.
const MAX_EVIDENCE: usize = 10;

pub(super) fn findings(evidence: &Evidence<'_>, explained: Vec<Explained>) -> Vec<Finding> {
    let mut groups: BTreeMap<(bool, DriftClass), Vec<Explained>> = BTreeMap::new();
    for explained in explained {
        groups.entry((!explained.counts, explained.class)).or_default().push(explained);
    }
    groups.into_iter().map(|((_, class), group)| finding(evidence, class, group)).collect()
}

fn finding(evidence: &Evidence<'_>, class: DriftClass, group: Vec<Explained>) -> Finding {
    let mut finding = Finding {
        key: evidence.key.clone(),
        class,
        rule: rule(&group),
        fields: Vec::new(),
        counts: false,
        actor: None,
        since: None,
        evidence: Vec::new(),
        fix: Fix { kind: super::FixKind::None, text: String::new(), patch: None },
    };
    let mut actors: Vec<String> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    let patch = fix_patch(evidence, class, &group);
    let in_git = group.iter().filter(|explained| explained.git.is_some());
    let (taken, removed): (Vec<bool>, Vec<bool>) =
        in_git.map(|explained| explained.git_takes_live).partition(|takes_live| *takes_live);
    let of_controller = (!removed.is_empty(), !taken.is_empty());
    for explained in group {
        finding.counts |= explained.counts;
        if explained.field != FieldPath::root() {
            finding.fields.push(explained.field);
        }
        actors.extend(explained.actor.filter(|actor| !actors.contains(actor)));
        hints.extend(explained.hint.filter(|hint| !hints.contains(hint)));
        finding.since = match (finding.since, explained.since) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if finding.evidence.len() < MAX_EVIDENCE
            && !finding.evidence.iter().any(|known| *known == explained.evidence)
        {
            finding.evidence.push(explained.evidence.into_owned());
        }
    }
    finding.fields.sort();
    finding.fields.dedup();
    finding.fix = Fix { patch, ..fix(evidence, &finding, of_controller, (&actors, &hints)) };
    if finding.fields.len() > MAX_FIELDS {
        let more = finding.fields.len() - MAX_FIELDS;
        finding.fields.truncate(MAX_FIELDS);
        finding.evidence.push(format!("and {more} more fields"));
    }
    finding.actor = (!actors.is_empty()).then(|| actors.join(", "));
    finding.since = since(evidence, &finding);
    finding
}

/// The names of the rules that decided, each once.
fn rule(group: &[Explained]) -> Cow<'static, str> {
    let mut names: Vec<&'static str> = Vec::new();
    for name in group.iter().filter_map(|explained| explained.rule) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [name] => Cow::Borrowed(*name),
        names => Cow::Owned(names.join(", ")),
    }
}

/// The time of the earlier finding, as long as it is the same difference; else the time of the write; else, for what counts,
/// the time at which plumb first saw it.
fn since(evidence: &Evidence<'_>, finding: &Finding) -> Option<jiff::Timestamp> {
    if evidence.facts.earlier.is_empty() {
        return finding.since.or(finding.counts.then_some(evidence.now));
    }
    // A pointer read from a report has list positions as fields; as text, both are the same.
    let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
    let earlier = evidence.facts.earlier.iter().find(|earlier| {
        earlier.key == finding.key
            && earlier.class == finding.class
            && earlier.actor == finding.actor
            && (earlier.fields.is_empty() == finding.fields.is_empty())
            && (earlier.fields.is_empty()
                || earlier.fields.iter().any(|field| fields.contains(&field.to_string())))
    });
    earlier.and_then(|earlier| earlier.since).or(finding.since).or(finding.counts.then_some(evidence.now))
}

fn fix(
    evidence: &Evidence<'_>,
    finding: &Finding,
    (removed, taken): (bool, bool),
    (actors, hints): (&[String], &[String]),
) -> Fix {
    let fields = || finding.fields.iter().map(ToString::to_string).collect::<Vec<String>>();
    match finding.class {
        DriftClass::SchemaDefault => classes::schema_default::fix(),
        DriftClass::PhantomDefault => classes::phantom_default::fix(),
        DriftClass::Unadopted => classes::unadopted::fix(evidence.facts.app),
        DriftClass::Orphan => classes::orphan::fix(evidence),
        DriftClass::SharedResource => classes::shared_resource::fix(evidence, &finding.key),
        DriftClass::HookResidue => classes::hook_residue::fix(),
        DriftClass::UnstableRender => classes::unstable_render::fix(&fields()),
        DriftClass::EquivalentValue => classes::equivalent_value::fix(),
        DriftClass::ControllerOwned => classes::controller_owned::fix(&fields(), removed, taken),
        DriftClass::AdmissionMutated => classes::admission_mutated::fix(),
        DriftClass::RejectedField => classes::rejected_field::fix(finding.counts, hints),
        DriftClass::StaleOwnership => classes::stale_ownership::fix(evidence.facts.app),
        DriftClass::Blocked => classes::blocked::fix(hints),
        DriftClass::UnclaimedAddition => classes::unclaimed_addition::fix(finding.counts),
        DriftClass::LiveEdit => classes::live_edit::fix(evidence.facts.app),
        DriftClass::Behind => classes::behind::fix(evidence.facts.app),
        DriftClass::TugOfWar => classes::tug_of_war::fix(actors.first().map(String::as_str)),
        DriftClass::Unexplained => classes::unexplained::fix(),
    }
}
