//! The interface of an engine to the rest of the process: health endpoints, metrics and webhooks use this, and nothing
//! else.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_core::app::AppId;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::annotations::REFRESH;
use plumb_crd::settings::{SecretData, WebhookSecrets};
use plumb_crd::{Application, to_app};
use plumb_kube::{ClusterClient, Fence, Gate, Selection};
use serde_json::json;
use tracing::{info, warn};

use crate::apps::requests::{application_gvk, application_patch};
use crate::config::app_namespaces::AppNamespaces;
use crate::config::load::load_settings;
use crate::config::options::Options;
use crate::config::store::ConfigStore;
use crate::engine::Engine;
use crate::metrics::counters::Metrics;
use crate::metrics::process;
use crate::metrics::series::Family;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::runtime::gauges;
use crate::triggers::webhook::Push;

/// Stage of an engine's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It runs discovery against the API server.
    Starting,
    /// Another process is the leader; this one takes over if that ends.
    StandingBy,
    /// It is the leader and waits for the initial lists.
    Filling,
    /// It is the leader and reconciles apps.
    Leading,
    /// It was asked to stop, or has lost its lease.
    Stopping,
}

impl Stage {
    /// True if the pod is ready. A standby is ready: a rolling update stops the old leader only after the new pod is
    /// ready, so it would never finish otherwise.
    fn is_ready(&self) -> bool {
        match self {
            Self::StandingBy | Self::Leading => true,
            Self::Starting | Self::Filling | Self::Stopping => false,
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::StandingBy => "standing by: another process leads",
            Self::Filling => "loading the state of the cluster",
            Self::Leading => "leading",
            Self::Stopping => "stopping",
        }
    }
}

/// How long `argocd-secret` is cached, so that a flood of webhook requests does not cause a flood of reads.
const SECRETS_FRESH: Duration = Duration::from_secs(5);

/// A view of one engine. Cheap to clone; all clones see the same engine. It is created before the engine, so that the
/// health endpoints work from the start.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    state: RwLock<State>,
    metrics: Arc<Metrics>,
    secrets: tokio::sync::Mutex<Option<(Instant, WebhookSecrets)>>,
}

struct State {
    stage: Stage,
    fence: Option<Fence>,
    control_plane: Option<ControlPlane>,
    engine: Weak<Engine>,
}

/// Where Applications and settings are.
#[derive(Clone)]
struct ControlPlane {
    client: ClusterClient,
    options: Options,
}

impl Default for Handle {
    fn default() -> Self {
        let state = State { stage: Stage::Starting, fence: None, control_plane: None, engine: Weak::new() };
        Self(Arc::new(Shared {
            state: RwLock::new(state),
            metrics: Arc::default(),
            secrets: tokio::sync::Mutex::default(),
        }))
    }
}

impl Handle {
    // --- for the engine ------------------------------------------------------------------------------

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.0.metrics)
    }

    pub(crate) fn connected(&self, client: &ClusterClient, options: &Options, fence: Fence) {
        let mut state = self.state_mut();
        state.control_plane = Some(ControlPlane { client: client.clone(), options: options.clone() });
        state.fence = Some(fence);
    }

    pub(super) fn working(&self, engine: &Arc<Engine>) {
        self.state_mut().engine = Arc::downgrade(engine);
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.state_mut().stage = stage;
    }

    // --- for the web server ----------------------------------------------------------------------------

    /// The current stage.
    pub fn stage(&self) -> Stage {
        self.state().stage.clone()
    }

    /// Whether the process is ready, and a description. A leader whose lease has expired is not ready.
    pub fn readiness(&self) -> (bool, &'static str) {
        let state = self.state();
        let lost =
            state.stage == Stage::Leading && state.fence.as_ref().is_some_and(|fence| fence.check().is_err());
        if lost { (false, "the lease is lost") } else { (state.stage.is_ready(), state.stage.description()) }
    }

    /// All metrics with their current values.
    pub fn families(&self) -> Vec<Family> {
        let mut families = gauges::of_process(&self.stage());
        if let Some(engine) = self.engine() {
            families.extend(gauges::of_engine(&engine));
        }
        families.extend(self.0.metrics.families());
        families.extend(process::families());
        families
    }

    /// The secrets that senders of webhooks must know; `None` if they cannot be read now.
    pub async fn webhook_secrets(&self) -> Option<WebhookSecrets> {
        let ControlPlane { client, options } = self.control_plane()?;
        let mut cached = self.0.secrets.lock().await;
        if let Some((_, secrets)) = cached.as_ref().filter(|(read, _)| read.elapsed() < SECRETS_FRESH) {
            return Some(secrets.clone());
        }
        let key = ObjectKey::new("", "Secret", Some(options.namespace), "argocd-secret");
        let secrets = match client.get(&key).await {
            Ok(Some(object)) => SecretData::read(object.value())
                .map(|(secret, _)| WebhookSecrets::read(&secret))
                .map_err(|error| warn!(%error, "cannot parse argocd-secret"))
                .ok()?,
            Ok(None) => WebhookSecrets::default(),
            Err(error) => {
                // No sender can be verified now, so all requests are refused.
                warn!(%error, "cannot read argocd-secret");
                return None;
            }
        };
        *cached = Some((Instant::now(), secrets.clone()));
        Some(secrets)
    }

    /// The largest body that a webhook may have.
    pub fn webhook_limit(&self) -> u64 {
        self.engine().map_or(plumb_crd::settings::Settings::default().webhook.max_bytes, |engine| {
            engine.config.settings().webhook.max_bytes
        })
    }

    /// Counts a webhook request.
    pub fn count_webhook(&self, sender: &str, outcome: &str) {
        self.0.metrics.webhook_requests.increment([sender, outcome]);
    }

    /// Requests runs of the apps that a push affects, and returns their number. A process that is not the leader
    /// requests a refresh from the leader by annotation.
    pub async fn pushed(&self, push: &Push) -> usize {
        let apps = match self.engine() {
            Some(engine) => engine.enqueue_pushed(push),
            None => self.forward_to_leader(push).await,
        };
        info!(repositories = ?push.repositories, revisions = ?push.revisions, apps, "push received");
        apps
    }

    async fn forward_to_leader(&self, push: &Push) -> usize {
        let Some(ControlPlane { client, options }) = self.control_plane() else { return 0 };
        // Only the leader keeps the settings up to date.
        let config = ConfigStore::default();
        load_settings(&client, &options.namespace, &config).await;
        let namespaces = AppNamespaces::new(&options, &config.settings());
        let selection = Selection { namespace: namespaces.to_watch(), ..Selection::default() };
        let applications = match client.list(&application_gvk(), &selection).await {
            Ok(applications) => applications,
            Err(error) => {
                warn!(%error, "cannot forward a push to the leader");
                return 0;
            }
        };
        // The annotation is a request to the leader, as a user would write it, so it needs no lease.
        let gate = Gate::new(client, Fence::of_command(), None);
        let mut n_apps = 0;
        for app in affected(&applications, &namespaces, push) {
            let patch = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
            match gate.write_own(&application_patch(&app, patch)).await {
                Ok(_) => n_apps += 1,
                Err(error) => warn!(%app, %error, "cannot forward a push to the leader"),
            }
        }
        n_apps
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.state().engine.upgrade()
    }

    fn control_plane(&self) -> Option<ControlPlane> {
        self.state().control_plane.clone()
    }

    fn state(&self) -> parking_lot::RwLockReadGuard<'_, State> {
        self.0.state.read()
    }

    fn state_mut(&self) -> parking_lot::RwLockWriteGuard<'_, State> {
        self.0.state.write()
    }
}

/// The apps that a push affects, in the namespaces that plumb manages.
fn affected(applications: &[Manifest], namespaces: &AppNamespaces, push: &Push) -> Vec<AppId> {
    let apps = applications.iter().filter_map(|manifest| {
        let application = Application::from_json(manifest.value()).ok()?;
        to_app(&application).ok().filter(|app| namespaces.permit(&app.id.namespace) && push.affects(app))
    });
    apps.map(|app| app.id).collect()
}

impl Engine {
    /// Requests runs of the apps that a push affects. If there are many, they are spread over the configured jitter.
    fn enqueue_pushed(&self, push: &Push) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_affects_the_apps_of_all_permitted_namespaces() {
        let application = |namespace: &str, repository: &str| {
            Manifest::new(json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "web", "namespace": namespace},
                "spec": {
                    "project": "default", "source": {"repoURL": repository, "path": "p"},
                    "destination": {"server": "https://kubernetes.default.svc"},
                },
            }))
            .unwrap()
        };
        let repository = "https://example.com/shop.git";
        let applications = [
            application("argocd", repository),
            application("team-a", repository),
            application("team-b", "https://example.com/other.git"),
            application("elsewhere", repository),
        ];
        let push =
            Push { repositories: vec![repository.to_owned()], touches_default: true, ..Push::default() };
        let check = |others: &[&str], wanted: &[&str]| {
            let namespaces = AppNamespaces::of("argocd", others);
            let found: Vec<String> =
                affected(&applications, &namespaces, &push).iter().map(ToString::to_string).collect();
            assert_eq!(found, wanted);
        };
        check(&[], &["argocd/web"]);
        check(&["team-*"], &["argocd/web", "team-a/web"]);
    }
}
