//! What the outside may see of an engine and ask of it: health endpoints, metrics and webhooks use this, and
//! nothing else.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_core::app::AppId;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::settings::{SecretData, WebhookSecrets};
use plumb_crd::{Application, to_app};
use plumb_kube::{ClusterClient, Fence, Gate, Selection};
use serde_json::json;
use tracing::{info, warn};

use crate::apps::registry::REFRESH_ANNOTATION;
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

/// How far an engine has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It asks the API server what it serves.
    Starting,
    /// Another process leads; this one would take over.
    StandingBy,
    /// It leads, and learns what the cluster holds.
    Filling,
    /// It works.
    Leading,
    /// It was asked to stop, or has lost its lease.
    Stopping,
}

impl Stage {
    /// Is a process in this stage what its Deployment waits for? One that stands by is: were it not, a rolling
    /// update would wait for it forever, since the old leader goes only when the new process is ready.
    fn is_ready(&self) -> bool {
        match self {
            Self::StandingBy | Self::Leading => true,
            Self::Starting | Self::Filling | Self::Stopping => false,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::StandingBy => "standing by: another process leads",
            Self::Filling => "learning what the cluster holds",
            Self::Leading => "leading",
            Self::Stopping => "stopping",
        }
    }
}

/// How long what was read from `argocd-secret` counts. Nobody can make plumb read it more often than this.
const SECRETS_FRESH: Duration = Duration::from_secs(5);

/// A view of one engine. Cheap to clone; all clones see the same engine. It is made before the engine, so that
/// health can be told from the first moment on.
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
    // --- what the engine tells ---------------------------------------------------------------------------

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.0.metrics)
    }

    pub(crate) fn connected(&self, client: &ClusterClient, options: &Options, fence: Fence) {
        let mut state = self.state_mut();
        state.control_plane = Some(ControlPlane { client: client.clone(), options: options.clone() });
        state.fence = Some(fence);
    }

    pub(crate) fn working(&self, engine: &Arc<Engine>) {
        self.state_mut().engine = Arc::downgrade(engine);
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.state_mut().stage = stage;
    }

    // --- what the outside sees ---------------------------------------------------------------------------

    /// How far it has come.
    pub fn stage(&self) -> Stage {
        self.state().stage.clone()
    }

    /// Is it ready, and in which words? A leader whose lease has run out is not.
    pub fn readiness(&self) -> (bool, &'static str) {
        let state = self.state();
        let lost =
            state.stage == Stage::Leading && state.fence.as_ref().is_some_and(|fence| fence.check().is_err());
        if lost { (false, "the lease is lost") } else { (state.stage.is_ready(), state.stage.words()) }
    }

    /// Every number, as it stands now.
    pub fn families(&self) -> Vec<Family> {
        let mut families = gauges::of_process(&self.stage());
        if let Some(engine) = self.engine() {
            families.extend(gauges::of_engine(&engine));
        }
        families.extend(self.0.metrics.families());
        families.extend(process::families());
        families
    }

    /// What senders of webhooks must prove; `None` if it cannot be told now.
    pub async fn webhook_secrets(&self) -> Option<WebhookSecrets> {
        let ControlPlane { client, options } = self.control_plane()?;
        let mut known = self.0.secrets.lock().await;
        if let Some((_, secrets)) = known.as_ref().filter(|(read, _)| read.elapsed() < SECRETS_FRESH) {
            return Some(secrets.clone());
        }
        let key = ObjectKey::new("", "Secret", Some(options.namespace), "argocd-secret");
        let secrets = match client.get(&key).await {
            Ok(Some(object)) => SecretData::read(object.value())
                .map(|(secret, _)| WebhookSecrets::read(&secret))
                .map_err(|error| warn!(%error, "argocd-secret cannot be read"))
                .ok()?,
            Ok(None) => WebhookSecrets::default(),
            Err(error) => {
                // Nobody can prove anything now; letting everybody in is no answer.
                warn!(%error, "argocd-secret cannot be read");
                return None;
            }
        };
        *known = Some((Instant::now(), secrets.clone()));
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

    /// Looks at the apps that a push concerns, and says how many they are. A process that does not lead asks
    /// the one that does, by annotation.
    pub async fn pushed(&self, push: &Push) -> usize {
        let apps = match self.engine() {
            Some(engine) => engine.pushed(push),
            None => self.pass_on(push).await,
        };
        info!(repositories = ?push.repositories, revisions = ?push.revisions, apps, "push");
        apps
    }

    async fn pass_on(&self, push: &Push) -> usize {
        let Some(ControlPlane { client, options }) = self.control_plane() else { return 0 };
        // The leader's settings are not known here.
        let config = ConfigStore::default();
        load_settings(&client, &options.namespace, &config).await;
        let namespaces = AppNamespaces::new(&options, &config.settings());
        let selection = Selection { namespace: namespaces.to_watch(), ..Selection::default() };
        let applications = match client.list(&application_gvk(), &selection).await {
            Ok(applications) => applications,
            Err(error) => {
                warn!(%error, "a push could not be passed on");
                return 0;
            }
        };
        // The annotation is a request to the leader, as a person would write it; no lease is needed for that.
        let gate = Gate::new(client, Fence::of_command(), None);
        let mut n_apps = 0;
        for app in concerned(&applications, &namespaces, push) {
            let patch = json!({"metadata": {"annotations": {REFRESH_ANNOTATION: "normal"}}});
            match gate.write_own(&application_patch(&app, patch)).await {
                Ok(_) => n_apps += 1,
                Err(error) => warn!(%app, %error, "a push could not be passed on"),
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

/// The apps that a push concerns, out of those that plumb looks at.
fn concerned(applications: &[Manifest], namespaces: &AppNamespaces, push: &Push) -> Vec<AppId> {
    let apps = applications.iter().filter_map(|manifest| {
        let application = Application::from_json(manifest.value()).ok()?;
        to_app(&application).ok().filter(|app| namespaces.permit(&app.id.namespace) && push.concerns(app))
    });
    apps.map(|app| app.id).collect()
}

impl Engine {
    /// Asks for runs of the apps that a push concerns. Beyond a number of apps they are spread over the time
    /// that the settings allow.
    fn pushed(&self, push: &Push) -> usize {
        let concerned: Vec<AppId> = self
            .registry
            .all()
            .into_iter()
            .filter(|known| known.app.as_ref().is_ok_and(|app| push.concerns(app)))
            .map(|known| known.id.clone())
            .collect();
        let settings = self.config.settings();
        let n_apps = u64::try_from(concerned.len()).unwrap_or(u64::MAX);
        let trigger = Trigger::new(RefreshDepth::GitNow, TriggerReason::Webhook);
        let spread =
            if n_apps > settings.webhook.jitter_threshold { settings.webhook.jitter } else { Duration::ZERO };
        let steps = u32::try_from(n_apps.max(1)).unwrap_or(u32::MAX);
        for (position, app) in (0u32..).zip(&concerned) {
            if spread.is_zero() {
                self.queue.push(app.clone(), trigger);
            } else {
                self.queue.push_after(app.clone(), trigger, spread * position / steps);
            }
        }
        concerned.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_is_passed_on_to_the_apps_of_all_permitted_namespaces() {
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
                concerned(&applications, &namespaces, &push).iter().map(ToString::to_string).collect();
            assert_eq!(found, wanted);
        };
        check(&[], &["argocd/web"]);
        check(&["team-*"], &["argocd/web", "team-a/web"]);
    }
}
