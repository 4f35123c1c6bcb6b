//! The interface of an engine to the rest of the process: health endpoints, metrics and webhooks use this, and nothing
//! else.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_core::object::ObjectKey;
use plumb_crd::settings::{ConfigData, SecretData, WebhookSecrets};
use plumb_kube::{ClusterClient, Fence, Leadership};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::deliver_pushes::Recipient;
use crate::config::options::Options;
use crate::engine::Engine;
use crate::metrics::counters::Metrics;
use crate::metrics::process;
use crate::metrics::series::Family;
use crate::pushes::push::Push;
use crate::pushes::push_box::PushBox;
use crate::runtime::gauges;

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
    /// It was asked to stop.
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

/// How long the rules for webhooks are cached, so that a flood of webhook requests does not cause a flood of reads.
const RULES_FRESH: Duration = Duration::from_secs(5);
/// How long reading them may take.
const RULES_WITHIN: Duration = Duration::from_secs(5);

/// What senders of webhooks must observe.
#[derive(Clone)]
pub struct WebhookRules {
    /// The secrets that they must know.
    pub secrets: WebhookSecrets,
    /// The largest body.
    pub max_bytes: u64,
}

/// A view of one engine. Cheap to clone; all clones see the same engine. It is created before the engine, so that the
/// health endpoints work from the start.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    state: RwLock<State>,
    metrics: Arc<Metrics>,
    rules: tokio::sync::Mutex<Option<(Instant, Option<WebhookRules>)>>,
    pushes: Arc<PushBox>,
}

struct State {
    stage: Stage,
    /// The fence of the last term in which this process led.
    fence: Option<Fence>,
    leadership: Option<watch::Receiver<Leadership>>,
    control_plane: Option<ControlPlane>,
    engine: Weak<Engine>,
}

impl State {
    fn holds_lease(&self) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.check().is_ok())
    }
}

/// Where Applications and settings are.
#[derive(Clone)]
pub(super) struct ControlPlane {
    pub(super) client: ClusterClient,
    pub(super) options: Options,
    /// The engine's runtime, to which the connections of the client belong.
    runtime: tokio::runtime::Handle,
}

impl Default for Handle {
    fn default() -> Self {
        let state = State {
            stage: Stage::Starting,
            fence: None,
            leadership: None,
            control_plane: None,
            engine: Weak::new(),
        };
        Self(Arc::new(Shared {
            state: RwLock::new(state),
            metrics: Arc::default(),
            rules: tokio::sync::Mutex::default(),
            pushes: Arc::default(),
        }))
    }
}

impl Handle {
    // --- for the engine ------------------------------------------------------------------------------

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.0.metrics)
    }

    pub(super) fn connected(
        &self,
        client: &ClusterClient,
        options: &Options,
        leadership: watch::Receiver<Leadership>,
    ) {
        let mut state = self.state_mut();
        let runtime = tokio::runtime::Handle::current();
        state.control_plane =
            Some(ControlPlane { client: client.clone(), options: options.clone(), runtime });
        state.leadership = Some(leadership);
    }

    pub(super) fn holds(&self, fence: Fence) {
        self.state_mut().fence = Some(fence);
    }

    pub(super) fn pushes(&self) -> Arc<PushBox> {
        Arc::clone(&self.0.pushes)
    }

    /// Who takes pushes now; `None` while the engine of this process starts or stops.
    pub(super) fn recipient(&self) -> Option<Recipient> {
        let state = self.state();
        match state.stage {
            Stage::Leading if state.holds_lease() => state.engine.upgrade().map(Recipient::Engine),
            Stage::StandingBy => state.control_plane.clone().map(Box::new).map(Recipient::Leader),
            Stage::Leading | Stage::Starting | Stage::Filling | Stage::Stopping => None,
        }
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
        let lost = state.stage == Stage::Leading && !state.holds_lease();
        if lost {
            return (false, "the lease is lost");
        }
        let fails = |leadership: &watch::Receiver<Leadership>| {
            matches!(*leadership.borrow(), Leadership::Failing { .. })
        };
        if state.stage == Stage::StandingBy && state.leadership.as_ref().is_some_and(fails) {
            return (false, "waiting for the lease: the API server does not confirm it");
        }
        (state.stage.is_ready(), state.stage.description())
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

    /// What senders of webhooks must observe; `None` if it cannot be read now. It is read on the engine's runtime, so
    /// that the server's thread owns no connection to the API server.
    pub async fn webhook_rules(&self) -> Option<WebhookRules> {
        let ControlPlane { client, options, runtime } = self.control_plane()?;
        let mut cached = self.0.rules.lock().await;
        if let Some((_, rules)) = cached.as_ref().filter(|(read, _)| read.elapsed() < RULES_FRESH) {
            return rules.clone();
        }
        let max_bytes = self.engine().map(|engine| engine.config.settings().webhook.max_bytes);
        let reading = runtime.spawn(async move { read_rules(&client, &options.namespace, max_bytes).await });
        let rules = if let Ok(read) = tokio::time::timeout(RULES_WITHIN, reading).await {
            read.ok().flatten()
        } else {
            warn!("cannot read argocd-secret: no answer in time; webhooks are refused");
            None
        };
        // A failure is kept as well, so that a flood of requests does not cause a flood of reads.
        *cached = Some((Instant::now(), rules.clone()));
        rules
    }

    /// Counts a webhook request.
    pub fn count_webhook(&self, sender: &str, outcome: &str) {
        self.0.metrics.webhook_requests.increment([sender, outcome]);
    }

    /// Counts a call of the API that plumb does not have. `method` is one of the API's tables, and `client` one of the
    /// programs that plumb knows, so their number is bounded.
    pub fn count_unimplemented(&self, method: &str, client: &str) {
        self.0.metrics.unimplemented_calls.increment([method, client]);
    }

    /// Takes a push. The leader requests runs of the apps that it affects; another process passes it on to the leader.
    pub fn pushed(&self, push: Push, verified: bool) {
        if !self.0.pushes.add(push.by_repository(verified)) {
            debug!("too many pushes wait; the next poll finds the commit");
        }
    }

    /// The engine while it leads and knows all Applications, and the runtime that its connections belong to.
    pub(super) fn leading(&self) -> Option<(Arc<Engine>, tokio::runtime::Handle)> {
        let state = self.state();
        let leads = state.stage == Stage::Leading && state.holds_lease();
        let engine = state.engine.upgrade().filter(|engine| leads && engine.registry.are_listed())?;
        Some((engine, state.control_plane.as_ref()?.runtime.clone()))
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

/// Reads the secrets for webhooks, and the largest body unless it is known.
async fn read_rules(client: &ClusterClient, namespace: &str, max_bytes: Option<u64>) -> Option<WebhookRules> {
    let key = |kind: &str, name: &str| ObjectKey::new("", kind, Some(namespace.to_owned()), name);
    let secrets = match client.get(&key("Secret", "argocd-secret")).await {
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
    if let Some(max_bytes) = max_bytes {
        return Some(WebhookRules { secrets, max_bytes });
    }
    // Only the leader keeps the settings up to date.
    let config_map = client.get(&key("ConfigMap", "argocd-cm")).await.ok().flatten();
    let data = config_map.as_ref().and_then(|object| object.value().get("data")?.as_object());
    let texts =
        data.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let (settings, _) = plumb_crd::settings::Settings::read(&texts.collect(), &ConfigData::new());
    Some(WebhookRules { secrets, max_bytes: settings.webhook.max_bytes })
}
