//! One destination cluster: how to read it, what it holds, how to write to it.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::app::ClusterRef;
use plumb_core::desired::{Scope, Scopes};
use plumb_core::object::GroupKind;
use plumb_core::project::TargetCluster;
use plumb_core::tracking::{TRACKING_ANNOTATION, TrackingId, TrackingMethod};
use plumb_crd::settings::RespectRbac;
use plumb_kube::{Catalog, ClusterClient, Gate, LiveOptions, LiveStore, Marks};

use crate::cluster::registration::Registration;
use crate::cluster::run_slots::RunSlots;
use crate::cluster::schemas::Schemas;
use crate::cluster::waiting_apps::WaitingApps;
use crate::config::store::ConfigStore;
use crate::metrics::counters::Metrics;

/// One destination cluster. Cheap to clone; clones share all state.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// The address that Applications use for it.
    pub(crate) server: Arc<str>,
    /// The name that Applications use for it.
    pub(crate) name: String,
    /// The only project that may use it, if its Secret names one.
    project: Option<String>,
    pub(crate) client: ClusterClient,
    pub(crate) store: LiveStore,
    pub(crate) gate: Gate,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) run_slots: RunSlots,
    pub(crate) waiting_for_lists: WaitingApps,
    /// Computed once for each state of the catalog.
    derived: Arc<Mutex<Option<Derived>>>,
}

/// Values that are derived from one state of the catalog.
#[derive(Clone)]
struct Derived {
    of: Arc<Catalog>,
    scopes: Arc<Scopes>,
    scopes_hash: u64,
    api_versions: Arc<[String]>,
}

impl Cluster {
    /// The home cluster, in which plumb runs.
    pub(crate) fn home(client: ClusterClient, store: LiveStore, gate: Gate, run_slots: RunSlots) -> Self {
        Self {
            server: ClusterRef::IN_CLUSTER_SERVER.into(),
            name: ClusterRef::IN_CLUSTER_NAME.to_owned(),
            project: None,
            schemas: Arc::new(Schemas::new(client.clone())),
            client,
            store,
            gate,
            run_slots,
            waiting_for_lists: WaitingApps::default(),
            derived: Arc::default(),
        }
    }

    /// A cluster that a Secret describes.
    pub(crate) fn registered(
        registration: &Registration,
        client: ClusterClient,
        store: LiveStore,
        gate: Gate,
        run_slots: RunSlots,
    ) -> Self {
        Self { server: Arc::clone(&registration.server), ..Self::home(client, store, gate, run_slots) }
            .renamed(registration)
    }

    /// The same cluster with the name and project of a Secret.
    pub(crate) fn renamed(&self, registration: &Registration) -> Self {
        Self { name: registration.name.clone(), project: registration.project.clone(), ..self.clone() }
    }

    /// The same cluster with another store of its objects.
    pub(crate) fn with_store(&self, store: LiveStore) -> Self {
        Self { store, ..self.clone() }
    }

    /// The cluster as project rules match it.
    pub(crate) fn target(&self) -> TargetCluster<'_> {
        TargetCluster { server: &self.server, name: &self.name, project: self.project.as_deref() }
    }

    /// Which kinds are namespaced.
    pub(crate) fn scopes(&self) -> Arc<Scopes> {
        self.derived().scopes
    }

    /// Changes when the scope of a kind changes.
    pub(crate) fn scopes_hash(&self) -> u64 {
        self.derived().scopes_hash
    }

    /// The API versions that the cluster serves, for the capabilities of charts.
    pub(crate) fn api_versions(&self) -> Arc<[String]> {
        self.derived().api_versions
    }

    fn derived(&self) -> Derived {
        let catalog = self.client.catalog();
        let mut cached = self.derived.lock();
        if let Some(cached) = cached.as_ref().filter(|cached| Arc::ptr_eq(&cached.of, &catalog)) {
            return cached.clone();
        }
        let mut scopes = Scopes::built_in();
        for (kind, served) in &catalog.kinds {
            scopes.insert(kind.clone(), if served.namespaced { Scope::Namespaced } else { Scope::Cluster });
        }
        let api_versions = catalog.api_versions().into();
        let scopes_hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&scopes);
        let derived = Derived { of: catalog, scopes: Arc::new(scopes), scopes_hash, api_versions };
        *cached = Some(derived.clone());
        derived
    }
}

/// Which objects of a cluster to keep, and which app owns an object by its tracking label or annotation.
pub(crate) fn live_options(config: &ConfigStore, server: &str) -> LiveOptions {
    let settings = config.settings();
    let tracking = settings.tracking.clone();
    let mut options = LiveOptions::new(Arc::new(move |marks: &Marks<'_>| {
        if tracking.method == TrackingMethod::Label {
            return marks.label(&tracking.label_key).map(str::to_owned).filter(|app| !app.is_empty());
        }
        let id: TrackingId = marks.annotation(TRACKING_ANNOTATION)?.parse().ok()?;
        Some(id.app).filter(|app| !app.is_empty())
    }));
    // Argo CD's `strict` also sends an access review. plumb does not: the refused list has the same answer.
    options.skip_forbidden = settings.respect_rbac != RespectRbac::Off;
    let (config, server) = (config.clone(), server.to_owned());
    options.excluded = Arc::new(move |kind| config.settings().filter.excludes(kind, &server));
    for kind in ["MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    {
        options.keep_whole.insert(GroupKind::new("admissionregistration.k8s.io", kind));
    }
    // Admission configurations select namespaces by their labels.
    options.keep_whole.insert(GroupKind::new("", "Namespace"));
    options
}

/// Counts every request to a cluster for the app whose run sends it.
pub(crate) fn observe_requests(client: &ClusterClient, metrics: &Arc<Metrics>, server: Arc<str>) {
    let metrics = Arc::clone(metrics);
    client.observe_requests(Arc::new(move |request| metrics.request(&server, request)));
}

#[cfg(test)]
mod tests {
    use plumb_core::object::Manifest;
    use serde_json::json;

    use super::*;

    fn check(respect: &str, skips: bool) {
        let config = ConfigStore::default();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"},
            "data": {"resource.respectRBAC": respect},
        });
        config.note_config_map("argocd-cm", Some(&Manifest::new(map).unwrap()));
        let options = live_options(&config, ClusterRef::IN_CLUSTER_SERVER);
        assert_eq!(options.skip_forbidden, skips, "`{respect}`");
    }

    #[test]
    fn forbidden_kinds_are_skipped_if_the_settings_say_so() {
        check("", false);
        check("normal", true);
        check("strict", true);
    }
}
