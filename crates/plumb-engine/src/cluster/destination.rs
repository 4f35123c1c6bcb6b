//! One destination cluster: how to read it, what it holds, how to write to it.

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
use crate::cluster::waiting_for_lists::WaitingForLists;
use crate::config::store::ConfigStore;
use crate::metrics::counters::Metrics;

/// One destination cluster. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// The address under which Applications name it.
    pub(crate) server: Arc<str>,
    /// The name under which they name it.
    pub(crate) name: String,
    /// The project it is registered for, if it is for one only.
    project: Option<String>,
    pub(crate) client: ClusterClient,
    pub(crate) store: LiveStore,
    pub(crate) gate: Gate,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) run_slots: RunSlots,
    pub(crate) waiting_for_lists: WaitingForLists,
    /// Worked out once for each state of the catalog.
    derived: Arc<Mutex<Option<Derived>>>,
}

/// What follows from one state of the catalog.
#[derive(Clone)]
struct Derived {
    of: Arc<Catalog>,
    scopes: Arc<Scopes>,
    api_versions: Arc<[String]>,
}

impl Cluster {
    /// The cluster that plumb itself works in.
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
            waiting_for_lists: WaitingForLists::default(),
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

    /// The same cluster as a Secret names it.
    pub(crate) fn renamed(&self, registration: &Registration) -> Self {
        Self { name: registration.name.clone(), project: registration.project.clone(), ..self.clone() }
    }

    /// As projects know it.
    pub(crate) fn target(&self) -> TargetCluster<'_> {
        TargetCluster { server: &self.server, name: &self.name, project: self.project.as_deref() }
    }

    /// Which kinds have namespaces.
    pub(crate) fn scopes(&self) -> Arc<Scopes> {
        self.derived().scopes
    }

    /// What the cluster serves, as charts ask for it.
    pub(crate) fn api_versions(&self) -> Arc<[String]> {
        self.derived().api_versions
    }

    fn derived(&self) -> Derived {
        let catalog = self.client.catalog();
        let mut known = self.derived.lock();
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.of, &catalog)) {
            return known.clone();
        }
        let mut scopes = Scopes::built_in();
        for (kind, served) in &catalog.kinds {
            scopes.insert(kind.clone(), if served.namespaced { Scope::Namespaced } else { Scope::Cluster });
        }
        let api_versions = catalog.api_versions().into();
        let derived = Derived { of: catalog, scopes: Arc::new(scopes), api_versions };
        *known = Some(derived.clone());
        derived
    }
}

/// What to follow of a cluster, and whose an object is by its marks.
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
    // Strict asks the server once more whether a kind may be listed: it just said that.
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

/// Counts every request to a cluster, on behalf of the app whose run it belongs to.
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
    fn kinds_that_may_not_be_listed_are_left_out_where_the_settings_say_so() {
        check("", false);
        check("normal", true);
        check("strict", true);
    }
}
