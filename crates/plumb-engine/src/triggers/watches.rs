//! What the cluster tells while the engine runs: settings, projects, Applications, live objects, schemas. Each
//! becomes a question to the queue: which apps have to be looked at, and how far.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::object::{Fingerprint, GroupVersionKind, Manifest};
use plumb_crd::settings::SecretData;
use plumb_crd::{AppProject, Application, DriftReport};
use plumb_kube::{Change, Changes, ObjectEvent, Origin, Role, Selection};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::cluster::clusters::Noted;
use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{Look, Trigger};
use crate::state::app_state::{Finished, Memory};

/// The `ConfigMaps` that settings are read from.
pub(crate) const SETTINGS: [&str; 6] = [
    "argocd-cm",
    "argocd-cmd-params-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
    plumb_crd::settings::PLUGINS_CONFIG_MAP,
];
/// Events of one change come together; this is how long they are gathered.
const BATCH: Duration = Duration::from_millis(2);
/// Objects of nobody change all the time, and it is not urgent how many there are.
const ORPHANS_BATCH: Duration = Duration::from_secs(1);

/// Says once that a first list has ended.
struct Listed(Option<oneshot::Sender<()>>);

impl Listed {
    fn tell(&mut self) {
        if let Some(waiting) = self.0.take() {
            let _ = waiting.send(());
        }
    }
}

/// Follows the `ConfigMaps` with settings, and looks at every app anew when they change.
pub(crate) async fn follow_config_maps(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version("v1", "ConfigMap");
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let before = engine.world.settings();
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        let changed = match event {
            ObjectEvent::Seen(object) => {
                let name = object.name().unwrap_or_default().to_owned();
                SETTINGS.contains(&name.as_str()) && engine.world.note_config_map(&name, Some(&object))
            }
            ObjectEvent::Gone { key, .. } => {
                SETTINGS.contains(&key.name.as_str()) && engine.world.note_config_map(&key.name, None)
            }
            ObjectEvent::Listed => false,
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of settings");
                false
            }
        };
        if !changed {
            continue;
        }
        let now = engine.world.settings();
        if (&now.tracking, now.respect_rbac) != (&before.tracking, before.respect_rbac) {
            engine.start_again.notify_one();
        }
        for cluster in engine.clusters() {
            cluster.store.reconsider();
        }
        engine.wake_all(Trigger::new(Look::Git, "settings"));
    }
}

/// Follows the Secrets that describe repositories and clusters. One of a repository concerns every app, one of
/// a cluster those that may go there.
pub(crate) async fn follow_secrets(engine: Arc<Engine>, listed: oneshot::Sender<()>) {
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    let selection = Selection {
        namespace: Some(engine.options.namespace.clone()),
        labels: Some("argocd.argoproj.io/secret-type".to_owned()),
        fields: None,
    };
    let mut listed = Listed(Some(listed));
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        let (name, object) = match event {
            ObjectEvent::Seen(object) => (object.name().unwrap_or_default().to_owned(), Some(object)),
            ObjectEvent::Gone { key, .. } => (key.name.clone(), None),
            ObjectEvent::Listed => {
                engine.fleet.note_listed();
                engine.wake_travellers();
                listed.tell();
                continue;
            }
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of repository and cluster Secrets");
                continue;
            }
        };
        let secret = object.as_ref().and_then(|object| SecretData::read(object.value()).ok());
        let secret = secret.map(|(secret, _)| secret);
        let (cluster, other) = match secret {
            Some(secret) if secret.secret_type() == Some("cluster") => (Some(secret), None),
            other => (None, other),
        };
        match engine.fleet.note_secret(&name, cluster.as_ref()) {
            Noted::Nothing => {}
            Noted::Changed => engine.wake_travellers(),
            Noted::ReadHomeAnew => engine.start_again.notify_one(),
        }
        if engine.world.note_secret(&name, other) {
            engine.wake_all(Trigger::new(Look::Git, "settings"));
        }
    }
}

/// What earlier processes reported, so that times go on and nothing is written twice.
pub(crate) async fn load_reports(engine: &Engine) {
    let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
    let selection = Selection { namespace: engine.app_namespaces.to_watch(), ..Selection::default() };
    let found = engine.home.client.for_each(&gvk, &selection, |manifest| {
        if let Some(id) = id_of(&manifest).filter(|id| engine.app_namespaces.permit(&id.namespace)) {
            engine.reports.found(id, &manifest);
        }
    });
    if let Err(error) = found.await {
        warn!(%error, "earlier reports are not known: times start anew");
    }
}

/// Follows the projects. Without them every app would be refused, so their first list is waited for.
pub(crate) async fn follow_projects(engine: Arc<Engine>, listed: oneshot::Sender<()>) {
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let mut listed = Listed(Some(listed));
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        let changed = match event {
            ObjectEvent::Seen(manifest) => {
                engine.leaving.note(&manifest);
                engine.world.note_project(&manifest)
            }
            ObjectEvent::Gone { key, .. } => {
                engine.leaving.forget(&key.name);
                engine.world.forget_project(&key.name)
            }
            ObjectEvent::Listed => {
                listed.tell();
                BTreeSet::new()
            }
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of projects");
                BTreeSet::new()
            }
        };
        if !changed.is_empty() {
            let apps = engine
                .registry
                .all()
                .into_iter()
                .filter(|known| known.app.as_ref().is_ok_and(|app| changed.contains(&app.project)));
            engine.wake(apps.map(|known| known.id.clone()).collect(), Trigger::new(Look::Live, "project"));
        }
    }
}

/// Follows the Applications. Those that are there at the start are all noted before the first is looked at:
/// what one app asks for decides what is done to another's objects.
pub(crate) async fn follow_applications(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND);
    let selection = Selection { namespace: engine.app_namespaces.to_watch(), ..Selection::default() };
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    let mut held: Option<Vec<(AppId, Trigger)>> = Some(Vec::new());
    while let Some(event) = stream.next().await {
        match event {
            ObjectEvent::Seen(manifest) => {
                if !manifest.namespace().is_some_and(|namespace| engine.app_namespaces.permit(namespace)) {
                    continue;
                }
                let Some((known, trigger)) = engine.registry.note(&manifest) else { continue };
                engine.recall_claims(&known);
                engine.leaving.reconsider();
                let id = known.id.clone();
                match (trigger, &mut held) {
                    (Some(trigger), Some(held)) => held.push((id, trigger)),
                    (Some(trigger), None) => engine.queue.push(id, trigger),
                    (None, _) => {}
                }
            }
            ObjectEvent::Gone { key, uid } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                engine.registry.forget(&id, &uid);
                engine.leaving.reconsider();
                engine.queue.push(id, Trigger::new(Look::Live, "gone"));
            }
            ObjectEvent::Listed => {
                info!(apps = engine.registry.all().len(), "applications known");
                engine.leaving.apps_are_known();
                for (id, trigger) in held.take().into_iter().flatten() {
                    engine.queue.push(id, trigger);
                }
            }
            ObjectEvent::Trouble(trouble) => warn!(trouble, "watch of applications"),
        }
    }
}

/// Wakes the apps whose objects have a schema that changed: what they mean may have changed with it.
pub(crate) async fn follow_schemas(engine: Arc<Engine>, cluster: Arc<Cluster>) {
    let mut changes = cluster.client.catalog_changes();
    let mut known = cluster.client.catalog();
    while changes.changed().await.is_ok() {
        let catalog = Arc::clone(&changes.borrow_and_update());
        let is_changed =
            |api_version: &str| known.schemas.get(api_version) != catalog.schemas.get(api_version);
        let mut concerned = BTreeSet::new();
        for app in engine.registry.all() {
            let is_here = app.app.as_ref().is_ok_and(|app| {
                engine.fleet.address(&app.destination.cluster).as_ref() == Some(&cluster.server)
            });
            if !is_here {
                continue;
            }
            // Whoever is being looked at just now may have taken the old schema: nobody waits for the end of that.
            let memory = engine.memories.of(&app.id);
            let uses_it = memory.try_lock().ok().is_none_or(|memory| {
                memory.gathered.as_ref().is_some_and(|kept| kept.shelf.api_versions().any(is_changed))
            });
            if uses_it {
                concerned.insert(app.id.clone());
            }
        }
        if !concerned.is_empty() {
            info!(apps = concerned.len(), "schemas changed");
        }
        engine.wake(concerned, Trigger::new(Look::Live, "schema"));
        known = catalog;
    }
}

/// Wakes the apps that a change of the cluster concerns.
pub(crate) async fn follow_changes(engine: Arc<Engine>, cluster: Arc<Cluster>, mut changes: Changes) {
    let mut batch = Vec::new();
    while changes.recv_many(&mut batch, 1024).await > 0 {
        let (began, n_changes) = (Instant::now(), batch.len());
        let mut apps = BTreeSet::new();
        let mut lookers = BTreeSet::new();
        let settings = engine.world.settings();
        for change in batch.drain(..) {
            if change.origin == Origin::Watched {
                let labels = [&*cluster.server, &change.key.group, &change.key.kind];
                engine.metrics.cluster_events.increment(labels);
            }
            if engine.updates.may_ignore(&cluster.server, &cluster.store, &settings, &change) {
                engine.metrics.unchanged.increment([&*cluster.server]);
                continue;
            }
            apps.extend(concerned(&engine, &cluster, &change));
            if change.touched.is_empty()
                && let Some(namespace) = &change.key.namespace
            {
                lookers.extend(engine.orphans.lookers(&cluster.server, namespace));
            }
        }
        for app in lookers.difference(&apps) {
            engine.queue.push_after(app.clone(), Trigger::new(Look::Live, "orphans"), ORPHANS_BATCH);
        }
        for app in apps {
            engine.queue.push_after(app, Trigger::new(Look::Live, "live"), BATCH);
        }
        engine.metrics.event_batch(&cluster.server, n_changes, began.elapsed());
    }
}

fn concerned(engine: &Engine, cluster: &Cluster, change: &Change) -> Vec<AppId> {
    let mut apps = Vec::new();
    for touched in &change.touched {
        // The run that wrote it looks at it by itself; but an Application is written by its own runs, and the app that
        // tracks it waits for what they say.
        let is_app = change.key.kind == Application::KIND && change.key.group == "argoproj.io";
        if change.origin == Origin::Written && touched.role == Role::Tracked && !is_app {
            continue;
        }
        let Some(id) = engine.registry.by_instance(&touched.instance, &engine.options.namespace) else {
            continue;
        };
        if change.key.kind == "Job" && touched.role != Role::Child {
            note_finished(engine, cluster, &id, change);
        }
        apps.push(id);
    }
    apps
}

/// Remembers a Job that ended: it may be collected before anybody looks.
fn note_finished(engine: &Engine, cluster: &Cluster, app: &AppId, change: &Change) {
    let Some(job) = change.last.as_deref().cloned().or_else(|| cluster.store.get_kept(&change.key)) else {
        return;
    };
    let Some((succeeded, at)) = ended(&job) else { return };
    let memory = engine.memories.of(app);
    let key = change.key.clone();
    let note = move |memory: &mut Memory| {
        let set = memory.gathered.as_ref().and_then(|kept| kept.shelf.set());
        let desired = set
            .as_ref()
            .and_then(|set| set.get().objects.get(&key))
            .map(|object| Fingerprint::of(&object.manifest));
        memory.finished.insert(key, Finished { at: Some(at), succeeded, desired });
    };
    if let Ok(mut free) = memory.try_lock() {
        return note(&mut free);
    }
    // A run of this app is under way and may take its time: other apps' events do not wait for it. The lock is
    // fair, so the note is there before the next run.
    tokio::spawn(async move { note(&mut *memory.lock().await) });
}

fn ended(job: &Manifest) -> Option<(bool, Timestamp)> {
    let conditions = job.value().pointer("/status/conditions")?.as_array()?;
    conditions.iter().find_map(|condition| {
        let succeeded = match condition["type"].as_str()? {
            "Complete" => true,
            "Failed" => false,
            _ => return None,
        };
        let at = condition["lastTransitionTime"]
            .as_str()
            .and_then(|at| at.parse().ok())
            .unwrap_or_else(Timestamp::now);
        (condition["status"] == "True").then_some((succeeded, at))
    })
}

fn id_of(manifest: &Manifest) -> Option<AppId> {
    Some(AppId { namespace: manifest.namespace()?.to_owned(), name: manifest.name()?.to_owned() })
}
