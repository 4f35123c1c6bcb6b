//! Objects in an app's namespace that belong to no app, where the project wants to hear of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_core::project::OrphanRules;
use plumb_kube::{LiveStore, TOMBSTONE_PREFIX};

/// Which apps look for orphans where, and how many they found.
#[derive(Debug, Default)]
pub(crate) struct Orphans(Mutex<HashMap<AppId, Looker>>);

#[derive(Debug)]
struct Looker {
    server: Arc<str>,
    namespace: String,
    count: u64,
}

impl Orphans {
    /// An app looked.
    pub(crate) fn note(&self, app: &AppId, server: &Arc<str>, namespace: &str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let looker = Looker { server: Arc::clone(server), namespace: namespace.to_owned(), count };
        self.lock().insert(app.clone(), looker);
    }

    /// An app does not look any more.
    pub(crate) fn forget(&self, app: &AppId) {
        self.lock().remove(app);
    }

    /// How many orphans an app found; `None` if it does not look.
    pub(crate) fn count(&self, app: &AppId) -> Option<u64> {
        self.lock().get(app).map(|looker| looker.count)
    }

    /// The apps that look in a namespace.
    pub(crate) fn counting_in(&self, server: &str, namespace: &str) -> BTreeSet<AppId> {
        let counting = self.lock();
        let here =
            counting.iter().filter(|(_, looker)| &*looker.server == server && looker.namespace == namespace);
        here.map(|(app, _)| app.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AppId, Looker>> {
        self.0.lock()
    }
}

/// The orphans of a namespace: what has no owner, carries the mark of no app that exists, may exist by the
/// project, and is not left alone by its rules. What plumb itself keeps, and the Applications and projects that
/// it works on, are nobody's orphans.
pub(crate) fn find(
    store: &LiveStore,
    namespace: &str,
    rules: &OrphanRules,
    is_permitted: impl Fn(&ObjectKey) -> bool,
    is_app: impl Fn(&str) -> bool,
) -> Vec<ObjectKey> {
    let is_plumbs = |key: &ObjectKey| {
        let is_control = key.group == "argoproj.io"
            && matches!(key.kind.as_str(), "Application" | "AppProject" | "ApplicationSet");
        is_control
            || key.group == "plumb.dev"
            || (key.kind == "Secret" && key.name.starts_with(TOMBSTONE_PREFIX))
    };
    store
        .in_namespace(namespace)
        .into_iter()
        .filter(|node| node.parents.is_empty() && !node.owner.as_deref().is_some_and(&is_app))
        .map(|node| node.key)
        .filter(|key| !is_plumbs(key) && !rules.ignores(key) && is_permitted(key))
        .collect()
}
