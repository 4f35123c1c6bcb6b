//! From verdicts and healths to the status of the app.

use plumb_core::app::App;
use plumb_core::desired::{ObjectOptions, PruneOption};
use plumb_core::drift::{NotCompared, VerdictStatus};
use plumb_core::health::{Health, HealthStatus, Role};
use plumb_core::object::ObjectKey;
use plumb_core::status::{AppStatus, ObjectStatus, RollUp, SyncCode, roll_up};
use tracing::debug;

use crate::apps::context::Ground;
use crate::compare::run::Compared;
use crate::reconcile::run::Run;

impl Run<'_> {
    pub(crate) fn roll_up(&self, app: &App, ground: &Ground, compared: &Compared) -> AppStatus {
        let desired = compared.gathered.desired.get();
        let version = |key: &ObjectKey| {
            let manifest = desired
                .objects
                .get(key)
                .map(|object| &object.manifest)
                .or_else(|| compared.live.objects.get(key).map(AsRef::as_ref));
            manifest.map(|manifest| manifest.gvk().version).unwrap_or_default()
        };
        let mut objects: Vec<ObjectStatus> = Vec::new();
        for verdict in compared.verdicts.values() {
            let is_handed_over = verdict.status == VerdictStatus::NotCompared(NotCompared::HandedOver);
            if is_handed_over || compared.hooks.contains(&verdict.key) {
                continue;
            }
            let live = compared.live.objects.get(&verdict.key);
            let wanted = desired.objects.get(&verdict.key);
            let options = live.map(|live| ObjectOptions::parse(live)).unwrap_or_default();
            let unheard = live
                .is_some_and(|live| live.annotation("argocd.argoproj.io/ignore-healthcheck") == Some("true"));
            let confirm = |option: Option<PruneOption>| option == Some(PruneOption::Confirm);
            let mut status = ObjectStatus::of(verdict, &version(&verdict.key));
            status.is_live = live.is_some();
            status.health = if live.is_some() {
                compared.checked.healths.get(&verdict.key).cloned()
            } else {
                Some(Health::new(HealthStatus::Missing, ""))
            };
            status.wave = wanted.map(|wanted| wanted.options.wave).or(Some(options.wave));
            status.requires_confirmation = confirm(options.prune)
                || confirm(options.delete)
                || app.sync_policy.has("Prune=confirm")
                || app.sync_policy.has("Delete=confirm");
            if let Some(why) = ground.denies(&verdict.key) {
                debug!(app = %app.id, object = %verdict.key, why, "not permitted");
                status.status = Some(SyncCode::Unknown);
            }
            let is_itself = verdict.key.kind == "Application"
                && verdict.key.group == "argoproj.io"
                && verdict.key.name == app.id.name
                && verdict.key.namespace.as_deref() == Some(&app.id.namespace);
            if wanted.is_some_and(|wanted| wanted.options.skip) {
                status.role = Role::Exempt;
            } else if unheard || is_itself {
                status.role = Role::Bystander;
            }
            objects.push(status);
        }
        for key in &compared.hooks {
            objects.push(ObjectStatus {
                key: key.clone(),
                version: version(key),
                status: None,
                counts: false,
                health: compared.checked.healths.get(key).cloned(),
                role: Role::Exempt,
                is_live: true,
                is_hook: true,
                requires_pruning: true,
                requires_confirmation: false,
                wave: compared.live.objects.get(key).map(|live| ObjectOptions::parse(live).wave),
            });
        }
        for (key, error) in &compared.unreadable {
            objects.push(ObjectStatus {
                key: key.clone(),
                version: version(key),
                status: Some(SyncCode::Unknown),
                counts: true,
                health: Some(Health::unknown(error.to_string())),
                role: Role::Counts,
                is_live: true,
                is_hook: false,
                requires_pruning: false,
                requires_confirmation: false,
                wave: None,
            });
        }
        let synced_metadata = self.known.wire.as_ref().ok().and_then(|application| {
            application
                .status
                .operation_state
                .as_ref()?
                .sync_result
                .as_ref()?
                .managed_namespace_metadata
                .clone()
        });
        let asked_metadata = self.known.wire.as_ref().ok().and_then(|application| {
            application.spec.sync_policy.as_ref()?.managed_namespace_metadata.clone()
        });
        let has_synced =
            self.known.wire.as_ref().is_ok_and(|application| application.status.operation_state.is_some());
        roll_up(RollUp {
            objects,
            load_failed: false,
            invalid_spec: false,
            namespace_metadata_changed: has_synced
                && asked_metadata.is_some()
                && synced_metadata != asked_metadata,
        })
    }
}
