//! The order of steps inside a sync.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Action, Group, Step, SyncPhase};
use crate::desired::Wave;
use crate::object::{GroupKind, Manifest, ObjectKey};

/// A step's turn inside its group. All steps of a stage run at once; a stage begins when the one before it
/// has ended. Kinds that need nothing of each other share a stage, so that a group costs few round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Stage {
    /// Deletions of objects that were removed from Git.
    Prunes,
    /// Namespaces and CRDs: other objects need them to exist.
    Foundations,
    /// What workloads read when they start: accounts, configuration, roles, volumes, services …
    Prerequisites,
    /// Role bindings: the API server looks the role up when it checks for escalation.
    Bindings,
    /// Everything else.
    Workloads,
}

/// Kinds in the order in which they are applied; all others come after.
const KINDS: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Position of a kind in the order of application.
pub fn kind_rank(kind: &str) -> usize {
    KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len())
}

/// The stage in which an object of this kind is written.
pub(super) fn stage_of(kind: &str) -> Stage {
    match kind {
        "Namespace" | "CustomResourceDefinition" => Stage::Foundations,
        "ClusterRoleBinding" | "ClusterRoleBindingList" | "RoleBinding" | "RoleBindingList" => {
            Stage::Bindings
        }
        other if kind_rank(other) <= kind_rank("Service") => Stage::Prerequisites,
        _ => Stage::Workloads,
    }
}

/// A step with its place in the plan, before steps are put into groups.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) wave: Wave,
    pub(super) step: Step,
    /// The group and kind that it defines, if it is a CRD.
    pub(super) defines: Option<GroupKind>,
    /// Goes after everything else of the `Sync` phase.
    pub(super) last: bool,
}

impl Placed {
    fn is_prune(&self) -> bool {
        self.step.stage == Stage::Prunes
    }

    fn place(&self) -> (SyncPhase, Wave) {
        (self.step.id.phase, self.wave)
    }

    /// Must `foundation` exist before this?
    fn needs(&self, foundation: &Placed) -> bool {
        if self.is_prune() || self.step.id == foundation.step.id {
            return false;
        }
        let key = &self.step.id.key;
        if let Some(defined) = &foundation.defines {
            return key.group_kind() == *defined;
        }
        is_namespace(&foundation.step.id.key)
            && key.namespace.as_deref() == Some(&foundation.step.id.key.name)
    }
}

fn is_namespace(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

/// The group and kind that a CRD defines.
pub(super) fn defined_kind(manifest: &Manifest) -> Option<GroupKind> {
    if manifest.group() != "apiextensions.k8s.io" || manifest.kind() != "CustomResourceDefinition" {
        return None;
    }
    let spec = manifest.value().get("spec")?;
    Some(GroupKind::new(spec.get("group")?.as_str()?, spec.get("names")?.get("kind")?.as_str()?))
}

/// Settles waves, moves foundations in front of what needs them, and puts the steps into sorted groups.
pub(super) fn arrange(steps: Vec<Placed>) -> (Vec<Group>, Vec<Group>) {
    let steps = bubble_up(prune_last(mirror_prunes(steps)));
    let mut groups: BTreeMap<(SyncPhase, Wave), Vec<Step>> = BTreeMap::new();
    for placed in steps {
        groups.entry(placed.place()).or_default().push(placed.step);
    }
    let groups = groups.into_iter().map(|((phase, wave), mut steps)| {
        steps.sort_by_cached_key(|step| {
            let key = &step.id.key;
            (step.stage, kind_rank(&key.kind), key.name.clone(), key.clone())
        });
        Group { phase, wave, steps }
    });
    groups.partition(|group| group.phase != SyncPhase::SyncFail)
}

/// What was created last is deleted first: the distinct waves of the prunes swap places, lowest with highest.
fn mirror_prunes(mut steps: Vec<Placed>) -> Vec<Placed> {
    let waves: BTreeSet<Wave> =
        steps.iter().filter(|placed| placed.is_prune()).map(|placed| placed.wave).collect();
    let mirrored: BTreeMap<Wave, Wave> = waves.iter().copied().zip(waves.iter().rev().copied()).collect();
    for placed in &mut steps {
        if placed.is_prune() {
            placed.wave = mirrored.get(&placed.wave).copied().unwrap_or(placed.wave);
        }
    }
    steps
}

fn prune_last(mut steps: Vec<Placed>) -> Vec<Placed> {
    let highest = steps
        .iter()
        .filter(|placed| placed.step.id.phase == SyncPhase::Sync)
        .map(|placed| placed.wave.0)
        .fold(0, i32::max);
    for placed in &mut steps {
        if placed.is_prune() && placed.last {
            placed.wave = Wave(highest.saturating_add(1));
        }
    }
    steps
}

/// A Namespace or CRD that would come after something that needs it moves to that one's phase and wave.
fn bubble_up(mut steps: Vec<Placed>) -> Vec<Placed> {
    let moves: Vec<(usize, (SyncPhase, Wave))> = steps
        .iter()
        .enumerate()
        .filter(|(_, placed)| !placed.is_prune() && !matches!(placed.step.action, Action::RunHook(_)))
        .filter(|(_, placed)| placed.defines.is_some() || is_namespace(&placed.step.id.key))
        .filter_map(|(index, foundation)| {
            let first = steps.iter().filter(|other| other.needs(foundation)).map(Placed::place).min()?;
            (first < foundation.place()).then_some((index, first))
        })
        .collect();
    for (index, (phase, wave)) in moves {
        if let Some(placed) = steps.get_mut(index) {
            placed.step.id.phase = phase;
            placed.wave = wave;
        }
    }
    steps
}
