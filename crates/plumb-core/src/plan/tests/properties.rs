//! What holds for every plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::fixture::Fixture;
use crate::object::ObjectKey;
use crate::plan::*;

fn line(index: usize) -> impl Strategy<Value = String> {
    let place = prop_oneof![Just("git"), Just("both"), Just("drift"), Just("live")];
    let kind = prop_oneof![
        Just("ConfigMap"),
        Just("Deployment"),
        Just("Namespace"),
        Just("CustomResourceDefinition"),
        Just("Widget"),
        Just("RoleBinding"),
        Just("PersistentVolumeClaim"),
        Just("Job"),
    ];
    let extra = prop_oneof![
        8 => Just(""),
        1 => Just("options=Prune=false"),
        1 => Just("options=Prune=confirm"),
        1 => Just("options=PruneLast=true"),
        1 => Just("options=Replace=true"),
        1 => Just("owner=other:shop"),
        1 => Just("owner=gone:shop"),
        1 => Just("owner=nobody"),
        1 => Just("also=shop"),
        1 => Just("paused"),
        1 => Just("terminating"),
        1 => Just("defines=example.com/Widget"),
        2 => Just("hook=PreSync"),
        1 => Just("hook=PostSync,SyncFail"),
    ];
    let namespace = prop_oneof![Just("prod"), Just("o0"), Just("o1")];
    (place, kind, -2..3_i32, extra, namespace).prop_map(move |(place, kind, wave, extra, namespace)| {
        format!("{place} {kind} o{index} wave={wave} ns={namespace} {extra}")
    })
}

fn facts() -> impl Strategy<Value = String> {
    let sync = prop_oneof![
        Just("sync prune"),
        Just("sync"),
        Just("sync prune automated"),
        Just("sync prune option=PruneLast=true option=CreateNamespace=true"),
        Just("sync no-hooks prune option=ApplyOutOfSyncOnly=true"),
        Just("sync prune only=ConfigMap/o1"),
    ];
    let rest = prop_oneof![4 => Just(""), 1 => Just("unproven"), 1 => Just("budget off")];
    let lines = (0..12_usize).prop_flat_map(|n| (0..n).map(line).collect::<Vec<_>>());
    (sync, rest, lines).prop_map(|(sync, rest, lines)| format!("{sync}\n{rest}\n{}", lines.join("\n")))
}

/// Where each object is written; prunes and skips write nothing.
fn writes(plan: &Plan) -> Vec<(usize, Stage, &Step)> {
    let groups = plan.groups.iter().chain(&plan.on_failure).enumerate();
    groups
        .flat_map(|(index, group)| group.steps.iter().map(move |step| (index, step.stage, step)))
        .filter(|(_, _, step)| match step.action {
            Action::Apply { .. }
            | Action::Unchanged
            | Action::RunHook(_)
            | Action::CreateNamespace { .. } => true,
            Action::Prune { .. } | Action::Skip(_) => false,
        })
        .collect()
}

fn defined(fixture: &Fixture, key: &ObjectKey) -> Option<crate::object::GroupKind> {
    fixture.desired.objects.get(key).and_then(|object| order::defined_kind(&object.manifest))
}

proptest! {
    #[test]
    fn a_plan_is_a_topological_order(text in facts()) {
        let fixture = Fixture::parse(&text);
        let Ok(plan) = fixture.build() else { return Ok(()) };
        let places: Vec<_> = plan.groups.iter().map(|group| (group.phase, group.wave)).collect();
        prop_assert!(places.is_sorted_by(|one, other| one < other), "{places:?}");
        for group in plan.groups.iter().chain(&plan.on_failure) {
            prop_assert!(group.steps.is_sorted_by_key(|step| step.stage));
            prop_assert!(group.steps.iter().all(|step| step.id.phase == group.phase));
        }
        prop_assert!(plan.on_failure.iter().all(|group| group.phase == SyncPhase::SyncFail));
        let ids: BTreeSet<&StepId> = plan.steps().map(|step| &step.id).collect();
        prop_assert_eq!(ids.len(), plan.steps().count(), "a step occurs twice");

        let writes = writes(&plan);
        for (index, stage, foundation) in &writes {
            let key = &foundation.id.key;
            let is_object = foundation.hook().is_none();
            let is_namespace = key.kind == "Namespace" && key.group.is_empty();
            let kind = defined(&fixture, key);
            for (other_index, other_stage, other) in &writes {
                let needs = is_namespace && other.id.key.namespace.as_deref() == Some(&key.name)
                    || kind.as_ref().is_some_and(|kind| other.id.key.group_kind() == *kind);
                if is_object && needs && other.id != foundation.id {
                    let comes_first = index < other_index || (index == other_index && stage < other_stage);
                    prop_assert!(comes_first, "{} after {}", foundation.id, other.id);
                }
            }
        }
    }

    #[test]
    fn nothing_is_pruned_without_proof_or_reason(text in facts()) {
        let fixture = Fixture::parse(&text);
        let Ok(plan) = fixture.build() else { return Ok(()) };
        for step in plan.steps() {
            if !matches!(step.action, Action::Prune { .. }) {
                continue;
            }
            let key = &step.id.key;
            let facts = fixture.facts.get(key).expect("a known object");
            let live = facts.live.as_ref().expect("a live object");
            prop_assert!(fixture.request.prune && fixture.request.selects(key));
            prop_assert!(fixture.deletions.as_ref().is_ok_and(|proof| proof.has_left(key)));
            prop_assert!(!fixture.desired.objects.contains_key(key));
            prop_assert!(live.owner == Owner::ThisApp && !live.options.is_hook);
            prop_assert!(live.options.prune != Some(crate::desired::PruneOption::Never));
            prop_assert!(facts.also_rendered_by.is_none() && facts.paused.is_none());
        }
    }

    #[test]
    fn another_apps_object_is_never_written(text in facts()) {
        let fixture = Fixture::parse(&text);
        let Ok(plan) = fixture.build() else { return Ok(()) };
        for (_, _, step) in writes(&plan) {
            let live = fixture.facts.get(&step.id.key).and_then(|facts| facts.live.as_ref());
            let is_theirs = matches!(live.map(|live| &live.owner), Some(Owner::Other { renders: true, .. }));
            prop_assert!(!is_theirs || step.hook().is_some(), "{}", step.id);
        }
    }

    #[test]
    fn the_same_facts_give_the_same_plan(text in facts()) {
        let fixture = Fixture::parse(&text);
        prop_assert_eq!(fixture.build(), fixture.build());
    }
}
