//! Waves that are never reached: an object waits for one that a later wave or phase brings.

use std::collections::BTreeMap;

use super::{LintApp, LintFinding, LintRule, Severity};
use crate::desired::{HookPhase, Origin, Wave};
use crate::object::{FieldPath, GroupKind, Manifest, ObjectKey};
use crate::references::{Need, references};
use crate::tracking::is_crd;

const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";

/// When an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    phase: HookPhase,
    wave: Wave,
}

struct Entry<'app> {
    key: Option<ObjectKey>,
    manifest: &'app Manifest,
    origin: Option<&'app Origin>,
    namespace: Option<&'app str>,
    turn: Turn,
}

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let entries = entries(app);
    let turns: BTreeMap<&ObjectKey, Turn> =
        entries.iter().filter_map(|entry| Some((entry.key.as_ref()?, entry.turn))).collect();
    let definitions: BTreeMap<GroupKind, &ObjectKey> = entries
        .iter()
        .filter(|entry| is_crd(entry.manifest))
        .filter_map(|entry| Some((defines(entry.manifest)?, entry.key.as_ref()?)))
        .collect();
    let mut findings = Vec::new();
    for entry in &entries {
        findings.extend(not_a_number(app, entry));
        let mut needed: Vec<(ObjectKey, FieldPath)> = references(entry.manifest, entry.namespace)
            .into_iter()
            .filter(|reference| reference.need == Need::Blocks && Some(&reference.to) != app.creates)
            .map(|reference| (reference.to, reference.field))
            .collect();
        if let Some(definition) = definitions.get(&entry.manifest.gvk().group_kind()) {
            needed.push(((*definition).clone(), FieldPath::root().field("kind")));
        }
        needed.dedup_by(|one, other| one.0 == other.0);
        for (key, field) in needed {
            // Hooks of one phase and objects of the app are applied in the order of their waves.
            if let Some(turn) = turns.get(&key).filter(|turn| **turn > entry.turn) {
                findings.push(finding(app, entry, (&key, *turn), field));
            }
        }
    }
    findings
}

fn finding(
    app: &LintApp<'_>,
    entry: &Entry<'_>,
    (needed, turn): (&ObjectKey, Turn),
    field: FieldPath,
) -> LintFinding {
    let place = |turn: Turn| match turn.phase {
        HookPhase::Sync => format!("wave {}", turn.wave.0),
        phase => format!("phase {phase:?}, wave {}", turn.wave.0),
    };
    let message = format!(
        "it is applied in {} and needs {needed}, which is applied in {}: the first sync never gets there",
        place(entry.turn),
        place(turn)
    );
    let fix = if entry.turn.phase == turn.phase {
        format!("give {needed} a sync wave of at most {}", entry.turn.wave.0)
    } else {
        format!(
            "make {needed} a {:?} hook with an earlier wave, or run the hook in a later phase",
            entry.turn.phase
        )
    };
    LintFinding::new(LintRule::UnreachableWave, app.name, message, fix)
        .of(entry.key.clone(), entry.origin)
        .at(vec![field])
}

/// An annotation that is no number counts as 0.
fn not_a_number(app: &LintApp<'_>, entry: &Entry<'_>) -> Option<LintFinding> {
    let text = entry.manifest.annotation(SYNC_WAVE)?;
    if text.parse::<i64>().is_ok() {
        return None;
    }
    let message = format!("the sync wave {text:?} is not a number: the object is in wave 0");
    let field = FieldPath::root().field("metadata").field("annotations").field(SYNC_WAVE);
    Some(
        LintFinding::new(LintRule::UnreachableWave, app.name, message, "write a whole number in quotes")
            .of(entry.key.clone(), entry.origin)
            .at(vec![field])
            .with_severity(Severity::Warning),
    )
}

fn entries<'app>(app: &LintApp<'app>) -> Vec<Entry<'app>> {
    let objects = app.objects().map(|object| Entry {
        key: Some(object.key.clone()),
        manifest: &object.manifest,
        origin: object.origin.as_ref(),
        namespace: object.key.namespace.as_deref(),
        turn: Turn { phase: HookPhase::Sync, wave: object.options.wave },
    });
    // Hooks that run when something failed or is deleted find everything there.
    let hooks = app.hooks().filter_map(|hook| {
        let phases = hook.phases.iter().copied();
        let phase = phases.filter(|phase| *phase <= HookPhase::PostSync).min()?;
        Some(Entry {
            key: hook.key(),
            manifest: &hook.manifest,
            origin: hook.origin.as_ref(),
            namespace: hook.namespace.as_deref(),
            turn: Turn { phase, wave: hook.options.wave },
        })
    });
    objects.chain(hooks).collect()
}

/// The kind that a CRD defines.
fn defines(crd: &Manifest) -> Option<GroupKind> {
    let text = |pointer: &str| crd.value().pointer(pointer).and_then(serde_json::Value::as_str);
    Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
}
