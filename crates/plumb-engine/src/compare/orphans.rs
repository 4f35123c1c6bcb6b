//! Orphaned resources: objects in an app's namespace that belong to no app. Projects can ask for a warning about them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_core::project::OrphanRules;
use plumb_kube::{LiveStore, PUSHES_CONFIG_MAP, STATE_CONFIG_MAP, TOMBSTONE_PREFIX};

/// The namespaces that apps monitor for orphans, and how many they found.
#[derive(Debug, Default)]
pub(crate) struct Orphans(Mutex<HashMap<AppId, OrphanCount>>);

#[derive(Debug)]
struct OrphanCount {
    server: Arc<str>,
    namespace: String,
    count: u64,
}

impl Orphans {
    /// Records how many orphans an app found in its namespace.
    pub(crate) fn note(&self, app: &AppId, server: &Arc<str>, namespace: &str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let count = OrphanCount { server: Arc::clone(server), namespace: namespace.to_owned(), count };
        self.lock().insert(app.clone(), count);
    }

    /// Removes an app that no longer monitors orphans.
    pub(crate) fn forget(&self, app: &AppId) {
        self.lock().remove(app);
    }

    /// How many orphans an app found; `None` if it does not monitor them.
    pub(crate) fn count(&self, app: &AppId) -> Option<u64> {
        self.lock().get(app).map(|found| found.count)
    }

    /// The apps that monitor a namespace.
    pub(crate) fn counting_in(&self, server: &str, namespace: &str) -> BTreeSet<AppId> {
        let counts = self.lock();
        let here =
            counts.iter().filter(|(_, found)| &*found.server == server && found.namespace == namespace);
        here.map(|(app, _)| app.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AppId, OrphanCount>> {
        self.0.lock()
    }
}

/// The orphans of a namespace: objects that have no owner, are tracked by no existing app, are permitted by the project
/// and not ignored by its rules. plumb's own objects, Applications and projects are never orphans.
pub(crate) fn find(
    store: &LiveStore,
    namespace: &str,
    rules: &OrphanRules,
    is_permitted: impl Fn(&ObjectKey) -> bool,
    is_app: impl Fn(&str) -> bool,
) -> Vec<ObjectKey> {
    let is_control_plane = |key: &ObjectKey| {
        let is_argo_cd = key.group == "argoproj.io"
            && matches!(key.kind.as_str(), "Application" | "AppProject" | "ApplicationSet");
        is_argo_cd
            || key.group == "plumb.dev"
            || (key.kind == "Secret" && key.name.starts_with(TOMBSTONE_PREFIX))
            || (key.kind == "ConfigMap" && [PUSHES_CONFIG_MAP, STATE_CONFIG_MAP].contains(&key.name.as_str()))
    };
    store
        .in_namespace(namespace)
        .into_iter()
        .filter(|node| node.parents.is_empty() && !node.owner.as_deref().is_some_and(&is_app))
        .map(|node| node.key)
        .filter(|key| !is_control_plane(key) && !rules.ignores(key) && is_permitted(key))
        .collect()
}
