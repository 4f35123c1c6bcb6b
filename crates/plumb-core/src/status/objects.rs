//! The entries of `status.resources`, from verdicts and healths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ObjectStatus, SyncCode};
use crate::app::AppId;
use crate::desired::{DesiredSet, ObjectOptions, PruneOption};
use crate::drift::{NotCompared, Verdict, VerdictStatus};
use crate::health::{Health, HealthStatus, Role};
use crate::object::{Manifest, ObjectKey};

/// An object's health does not count for the app's.
const IGNORE_HEALTH: &str = "argocd.argoproj.io/ignore-healthcheck";

/// What a comparison found, object by object.
#[derive(Clone, Copy)]
pub struct ComparedObjects<'a> {
    /// The app itself.
    pub app: &'a AppId,
    /// True if the app's sync options ask for confirmation before deletions.
    pub confirms_deletions: bool,
    /// What Git asks.
    pub desired: &'a DesiredSet,
    /// The live objects.
    pub live: &'a BTreeMap<ObjectKey, Arc<Manifest>>,
    /// The verdicts.
    pub verdicts: &'a BTreeMap<ObjectKey, Verdict>,
    /// The health of the live objects.
    pub healths: &'a BTreeMap<ObjectKey, Health>,
    /// Live hooks of the app.
    pub hooks: &'a BTreeSet<ObjectKey>,
    /// Objects that exist and could not be read, and why.
    pub unreadable: &'a [(ObjectKey, String)],
    /// True if the project does not permit the object.
    pub is_denied: &'a dyn Fn(&ObjectKey) -> bool,
}

impl ComparedObjects<'_> {
    /// One entry per object: compared ones, then hooks, then unreadable ones.
    pub fn statuses(&self) -> Vec<ObjectStatus> {
        let compared = self.verdicts.values().filter(|verdict| {
            let is_handed_over = verdict.status == VerdictStatus::NotCompared(NotCompared::HandedOver);
            !is_handed_over && !self.hooks.contains(&verdict.key)
        });
        let compared = compared.map(|verdict| self.compared(verdict));
        let hooks = self.hooks.iter().map(|key| self.hook(key));
        let unreadable = self.unreadable.iter().map(|(key, error)| self.unreadable(key, error));
        compared.chain(hooks).chain(unreadable).collect()
    }

    fn compared(&self, verdict: &Verdict) -> ObjectStatus {
        let key = &verdict.key;
        let live = self.live.get(key).map(AsRef::as_ref);
        let wanted = self.desired.objects.get(key);
        let options = live.map(ObjectOptions::parse).unwrap_or_default();
        let is_denied = (self.is_denied)(key);
        ObjectStatus {
            status: if is_denied { Some(SyncCode::Unknown) } else { SyncCode::of(&verdict.status) },
            is_live: live.is_some(),
            health: if live.is_some() {
                self.healths.get(key).cloned()
            } else {
                Some(Health::new(HealthStatus::Missing, ""))
            },
            wave: Some(wanted.map_or(options.wave, |wanted| wanted.options.wave)),
            requires_confirmation: [options.prune, options.delete].contains(&Some(PruneOption::Confirm))
                || self.confirms_deletions,
            role: if wanted.is_some_and(|wanted| wanted.options.skip) {
                Role::Exempt
            } else if live.is_some_and(ignores_health) || self.is_app_itself(key) {
                Role::Bystander
            } else {
                Role::Counts
            },
            ..ObjectStatus::of(verdict, &self.version(key))
        }
    }

    fn hook(&self, key: &ObjectKey) -> ObjectStatus {
        ObjectStatus {
            key: key.clone(),
            version: self.version(key),
            status: None,
            counts: false,
            health: self.healths.get(key).cloned(),
            role: Role::Exempt,
            is_live: true,
            is_hook: true,
            requires_pruning: true,
            requires_confirmation: false,
            wave: self.live.get(key).map(|live| ObjectOptions::parse(live).wave),
        }
    }

    fn unreadable(&self, key: &ObjectKey, error: &str) -> ObjectStatus {
        ObjectStatus {
            key: key.clone(),
            version: self.version(key),
            status: Some(SyncCode::Unknown),
            counts: true,
            health: Some(Health::unknown(error.to_owned())),
            role: Role::Counts,
            is_live: true,
            is_hook: false,
            requires_pruning: false,
            requires_confirmation: false,
            wave: None,
        }
    }

    /// Git's version of the object, or the live one.
    fn version(&self, key: &ObjectKey) -> String {
        let desired = self.desired.objects.get(key).map(|object| &object.manifest);
        let manifest = desired.or_else(|| self.live.get(key).map(AsRef::as_ref));
        manifest.map(|manifest| manifest.gvk().version).unwrap_or_default()
    }

    fn is_app_itself(&self, key: &ObjectKey) -> bool {
        key.kind == "Application"
            && key.group == "argoproj.io"
            && key.name == self.app.name
            && key.namespace.as_deref() == Some(&self.app.namespace)
    }
}

fn ignores_health(live: &Manifest) -> bool {
    live.annotation(IGNORE_HEALTH) == Some("true")
}
