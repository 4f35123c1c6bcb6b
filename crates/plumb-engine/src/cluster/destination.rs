//! One destination cluster: how to read it, what it holds, how to write to it.

use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::app::ClusterRef;
use plumb_core::desired::{Scope, Scopes};
use plumb_core::object::GroupKind;
use plumb_core::project::TargetCluster;
use plumb_core::tracking::{TRACKING_ANNOTATION, TrackingId, TrackingMethod};
use plumb_crd::settings::RespectRbac;
use plumb_kube::{Catalog, ClusterClient, Gate, LiveOptions, LiveStore, Marks};

use crate::cluster::registration::Registration;
use crate::cluster::run_slots::Seats;
use crate::cluster::schemas::Schemas;
use crate::config::store::World;
use crate::metrics::counters::Metrics;
use crate::triggers::initial_lists::TooEarly;

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
    pub(crate) seats: Seats,
    pub(crate) too_early: TooEarly,
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
    pub(crate) fn home(client: ClusterClient, store: LiveStore, gate: Gate, seats: Seats) -> Self {
        Self {
            server: ClusterRef::IN_CLUSTER_SERVER.into(),
            name: ClusterRef::IN_CLUSTER_NAME.to_owned(),
            project: None,
            schemas: Arc::new(Schemas::new(client.clone())),
            client,
            store,
            gate,
            seats,
            too_early: TooEarly::default(),
            derived: Arc::default(),
        }
    }

    /// A cluster that a Secret describes.
    pub(crate) fn registered(
        registration: &Registration,
        client: ClusterClient,
        store: LiveStore,
        gate: Gate,
        seats: Seats,
    ) -> Self {
        Self { server: Arc::clone(&registration.server), ..Self::home(client, store, gate, seats) }
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
        let mut known = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
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
pub(crate) fn live_options(world: &World, server: &str) -> LiveOptions {
    let settings = world.settings();
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
    let (world, server) = (world.clone(), server.to_owned());
    options.excluded = Arc::new(move |kind| world.settings().filter.excludes(kind, &server));
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
        let world = World::default();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"},
            "data": {"resource.respectRBAC": respect},
        });
        world.note_config_map("argocd-cm", Some(&Manifest::new(map).unwrap()));
        let options = live_options(&world, ClusterRef::IN_CLUSTER_SERVER);
        assert_eq!(options.skip_forbidden, skips, "`{respect}`");
    }

    #[test]
    fn kinds_that_may_not_be_listed_are_left_out_where_the_settings_say_so() {
        check("", false);
        check("normal", true);
        check("strict", true);
    }
}
