//! Delivers the pushes that webhooks report: to the engine of this process, or to the leader.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_kube::{FaultLog, Fence, Gate};
use tracing::{info, warn};

use super::handle::{ControlPlane, Handle};
use crate::engine::Engine;
use crate::pushes::push::RepositoryPush;
use crate::pushes::push_box::{PushBox, pass_on};
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// The shortest time between two deliveries: what arrives in between is merged.
const TO_ENGINE_EVERY: Duration = Duration::from_millis(250);
const TO_LEADER_EVERY: Duration = Duration::from_secs(1);
/// When a delivery that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// One line about pushes of unknown senders in this time.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Who takes pushes.
pub(super) enum Recipient {
    /// This process leads.
    Engine(Arc<Engine>),
    /// Another process leads.
    Leader(Box<ControlPlane>),
}

/// Delivers pushes, forever.
pub(super) async fn deliver_pushes(handle: Handle) {
    let pushes = handle.pushes();
    let mut log = DeliveryLog::default();
    let mut last: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let Some(due) = pushes.next_due(now) else {
            pushes.added().await;
            continue;
        };
        // While the engine starts, its apps are not known yet.
        let Some(recipient) = handle.recipient() else {
            tokio::time::sleep(TO_LEADER_EVERY).await;
            continue;
        };
        let every = match recipient {
            Recipient::Engine(_) => TO_ENGINE_EVERY,
            Recipient::Leader(_) => TO_LEADER_EVERY,
        };
        let at = last.map_or(due, |last| due.max(last + every));
        if at > now {
            drop(recipient);
            tokio::time::sleep(every.min(at - now)).await;
            continue;
        }
        last = Some(now);
        match recipient {
            Recipient::Engine(engine) => {
                for push in pushes.take_due(now) {
                    engine.set_signals.pushed(&push);
                    let apps = engine.enqueue_pushed(&push);
                    log.delivered(&push, Some(apps), now);
                }
            }
            Recipient::Leader(control_plane) => {
                if !to_leader(&control_plane, &pushes, &mut log, now).await {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            }
        }
    }
}

/// Passes pushes on with one write. False if it failed: then they wait again.
async fn to_leader(
    control_plane: &ControlPlane,
    pushes: &PushBox,
    log: &mut DeliveryLog,
    now: Instant,
) -> bool {
    let ControlPlane { client, options, .. } = control_plane;
    let due = pushes.take_due(now);
    let mark = format!("{} at {}", options.identity, Timestamp::now());
    let Some((write, left)) = pass_on(due.clone(), &options.namespace, &mark) else { return true };
    // It is a message to the leader, and not the leader's own work, so it needs no lease.
    let gate = Gate::new(client.clone(), Fence::of_command(), None);
    match gate.write_own(&write).await {
        Ok(_) => {
            for push in due.iter().filter(|push| !left.contains(push)) {
                log.delivered(push, None, now);
            }
            pushes.add(left);
            log.faults.over();
            true
        }
        Err(error) => {
            if let Some(times) = log.faults.fault(now) {
                warn!(%error, times, "cannot pass a push on to the leader; trying again");
            }
            pushes.add(due);
            false
        }
    }
}

/// Limits the lines about pushes: unknown senders can cause any number.
#[derive(Default)]
struct DeliveryLog {
    last: Option<Instant>,
    omitted: u64,
    faults: FaultLog,
}

impl DeliveryLog {
    fn delivered(&mut self, push: &RepositoryPush, apps: Option<usize>, now: Instant) {
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= LINE_EVERY);
        if !push.verified && !is_due {
            self.omitted += 1;
            return;
        }
        if !push.verified {
            self.last = Some(now);
        }
        let (repository, verified, omitted) =
            (&push.repository, push.verified, std::mem::take(&mut self.omitted));
        if let Some(apps) = apps {
            info!(%repository, apps, verified, omitted, "push received");
        } else {
            info!(%repository, verified, omitted, "push passed on to the leader");
        }
    }
}

impl Engine {
    /// Requests runs of the apps that a push affects. If there are many, they are spread over the configured jitter.
    fn enqueue_pushed(&self, push: &RepositoryPush) -> usize {
        let affected: Vec<AppId> = self
            .registry
            .all()
            .into_iter()
            .filter(|summary| summary.app.as_ref().is_ok_and(|app| push.affects(app)))
            .map(|summary| summary.id.clone())
            .collect();
        let settings = self.config.settings();
        let n_apps = u64::try_from(affected.len()).unwrap_or(u64::MAX);
        let trigger = Trigger::new(RefreshDepth::GitNow, TriggerReason::Webhook);
        let spread =
            if n_apps > settings.webhook.jitter_threshold { settings.webhook.jitter } else { Duration::ZERO };
        let steps = u32::try_from(n_apps.max(1)).unwrap_or(u32::MAX);
        for (position, app) in (0u32..).zip(&affected) {
            if spread.is_zero() {
                self.queue.push(app.clone(), trigger);
            } else {
                self.queue.push_after(app.clone(), trigger, spread * position / steps);
            }
        }
        affected.len()
    }
}
