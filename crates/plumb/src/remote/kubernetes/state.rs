//! What a command knows of the server.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::remote::api::Api;

/// The API of a server, for one command.
pub(crate) struct Door {
    api: Api,
    /// What the command calls the control-plane namespace. The server may have another one.
    home: String,
    control_namespace: OnceCell<String>,
    skips_validation: AtomicBool,
    app: Mutex<CurrentApp>,
}

/// The Application that was read last.
#[derive(Default)]
struct CurrentApp {
    namespace_and_name: Option<(String, String)>,
    nodes: Option<Vec<Value>>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("server", &self.api.base()).finish_non_exhaustive()
    }
}

impl Door {
    pub(crate) fn new(api: Api, home: String) -> Arc<Self> {
        let control_namespace = OnceCell::new();
        let (skips_validation, app) = (AtomicBool::default(), Mutex::default());
        Arc::new(Self { api, home, control_namespace, skips_validation, app })
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(super) fn home(&self) -> &str {
        &self.home
    }

    /// The namespace of the server's control plane.
    pub(super) async fn control_namespace(&self) -> String {
        let asked = async {
            let settings = self.api.get_raw("/api/v1/settings").await.unwrap_or_default();
            let name = settings["controllerNamespace"].as_str().filter(|name| !name.is_empty());
            name.unwrap_or(&self.home).to_owned()
        };
        self.control_namespace.get_or_init(|| asked).await.clone()
    }

    /// From now on, new Applications are not validated by the server.
    pub(crate) fn skip_validation(&self) {
        self.skips_validation.store(true, Ordering::Relaxed);
    }

    pub(super) fn skips_validation(&self) -> bool {
        self.skips_validation.load(Ordering::Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, CurrentApp> {
        self.app.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_app(&self, namespace: &str, name: &str) {
        // The tree is read again: the Application may have changed.
        *self.current() =
            CurrentApp { namespace_and_name: Some((namespace.to_owned(), name.to_owned())), nodes: None };
    }

    pub(super) fn current_app(&self) -> Option<(String, String)> {
        self.current().namespace_and_name.clone()
    }

    pub(super) fn known_nodes(&self) -> Option<Vec<Value>> {
        self.current().nodes.clone()
    }

    pub(super) fn note_nodes(&self, nodes: Vec<Value>) {
        self.current().nodes = Some(nodes);
    }
}
