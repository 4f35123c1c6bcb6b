//! One destination cluster: how to read it, what it holds, how to write to it.

use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::desired::{Scope, Scopes};
use plumb_core::project::TargetCluster;
use plumb_kube::{Catalog, ClusterClient, Gate, LiveStore};

use crate::schemas::Schemas;

/// One destination cluster.
pub(crate) struct Cluster {
    /// The address under which Applications name it.
    pub(crate) server: Arc<str>,
    /// The name under which they name it.
    pub(crate) name: String,
    pub(crate) client: ClusterClient,
    pub(crate) store: LiveStore,
    pub(crate) gate: Gate,
    pub(crate) schemas: Schemas,
    scopes: Mutex<Option<(Arc<Catalog>, Arc<Scopes>)>>,
}

impl Cluster {
    pub(crate) fn new(server: &str, name: &str, client: ClusterClient, store: LiveStore, gate: Gate) -> Self {
        let schemas = Schemas::new(client.clone());
        Self {
            server: server.into(),
            name: name.to_owned(),
            client,
            store,
            gate,
            schemas,
            scopes: Mutex::default(),
        }
    }

    /// As projects know it.
    pub(crate) fn target(&self) -> TargetCluster<'_> {
        TargetCluster { server: &self.server, name: &self.name, project: None }
    }

    /// Which kinds have namespaces; worked out once for each state of the catalog.
    pub(crate) fn scopes(&self) -> Arc<Scopes> {
        let catalog = self.client.catalog();
        let mut known = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, scopes)) = known.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &catalog)) {
            debug_assert!(Arc::ptr_eq(of, &catalog));
            return Arc::clone(scopes);
        }
        let mut scopes = Scopes::built_in();
        for (kind, served) in &catalog.kinds {
            scopes.insert(kind.clone(), if served.namespaced { Scope::Namespaced } else { Scope::Cluster });
        }
        let scopes = Arc::new(scopes);
        *known = Some((catalog, Arc::clone(&scopes)));
        scopes
    }
}
