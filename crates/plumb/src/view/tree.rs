//! An Application's objects with what they own: replica sets, pods, whatever a controller made of them.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use jiff::Timestamp;
use plumb_core::health;
use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, Selection, never_watched};
use serde_json::Value;

use super::describe::age;
use super::rows::{ObjectRow, fill_health, object_rows};
use crate::context::Context;
use crate::error::CommandError;

/// The metadata of everything in an app's namespaces, and who owns whom.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    objects: Vec<Manifest>,
    children: BTreeMap<String, Vec<usize>>,
}

/// How many kinds are listed at the same time.
const AT_ONCE: usize = 16;

impl Tree {
    /// Reads the metadata of all objects in the namespaces of the app. Kinds that may not be listed are left out.
    pub(crate) async fn read(client: &ClusterClient, application: &Application) -> Self {
        let mut namespaces: BTreeSet<&str> =
            application.status.resources.iter().map(|resource| resource.namespace.as_str()).collect();
        namespaces.insert(&application.spec.destination.namespace);
        namespaces.remove("");
        let catalog = client.catalog();
        let kinds: Vec<_> = catalog
            .kinds
            .iter()
            .filter(|(kind, served)| served.namespaced && !never_watched(kind))
            .filter_map(|(kind, _)| catalog.watchable(kind))
            .collect();
        let places: Vec<_> = kinds
            .iter()
            .flat_map(|kind| namespaces.iter().map(move |namespace| (kind, *namespace)))
            .collect();
        let lists = futures::stream::iter(places.into_iter().map(|(kind, namespace)| async move {
            let selection = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
            client.list_metadata(kind, &selection).await.unwrap_or_default()
        }));
        let found: Vec<Vec<Manifest>> = lists.buffered(AT_ONCE).collect().await;
        Self::of(found.into_iter().flatten().collect())
    }

    fn of(objects: Vec<Manifest>) -> Self {
        let mut children: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, object) in objects.iter().enumerate() {
            for owner in owners(object) {
                children.entry(owner.to_owned()).or_default().push(index);
            }
        }
        Self { objects, children }
    }

    /// All objects.
    pub(crate) fn objects(&self) -> &[Manifest] {
        &self.objects
    }

    /// The object of a status line.
    pub(crate) fn find(&self, state: &ObjectRow) -> Option<&Manifest> {
        self.objects.iter().find(|object| {
            object.group() == state.group
                && object.kind() == state.kind
                && object.name() == Some(&state.name)
                && object.namespace().unwrap_or_default() == state.namespace
        })
    }

    /// What an object owns.
    pub(crate) fn children(&self, object: &Manifest) -> Vec<&Manifest> {
        let indices = object.uid().and_then(|uid| self.children.get(uid));
        let mut owned: Vec<&Manifest> =
            indices.into_iter().flatten().filter_map(|index| self.objects.get(*index)).collect();
        owned.sort_by_key(|object| (object.kind().to_owned(), object.name().unwrap_or_default().to_owned()));
        owned
    }

    /// An object and everything below it.
    pub(crate) fn below<'a>(&'a self, object: &'a Manifest) -> Vec<&'a Manifest> {
        let mut all = vec![object];
        let mut next = 0;
        while let Some(object) = all.get(next).copied() {
            next += 1;
            for child in self.children(object) {
                // Owners in a circle would be somebody's joke.
                if !all.iter().any(|known| known.uid() == child.uid()) {
                    all.push(child);
                }
            }
        }
        all
    }
}

/// The uids of an object's owners.
pub(crate) fn owners(object: &Manifest) -> impl Iterator<Item = &str> {
    let owners = object.value().pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str())
}

/// Prints the tree, as `app get -o tree` and `app resources --output tree` do.
pub(crate) async fn show(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    detailed: bool,
) -> Result<(), CommandError> {
    let tree = Tree::read(client, application).await;
    let mut roots: Vec<ObjectRow> =
        object_rows(application).into_iter().filter(|state| state.hook.is_empty()).collect();
    fill_health(client, &mut roots).await;
    let now = Timestamp::now();
    let mut rows = Vec::new();
    for root in &roots {
        let object = tree.find(root);
        let mut row = vec![format!("{}/{}", root.kind, root.name), root.status.clone(), root.health.clone()];
        if detailed {
            row.push(object.map(|object| born(object, now)).unwrap_or_default());
            row.push(String::new());
        }
        row.push(root.message.clone());
        rows.push(row);
        if let Some(object) = object {
            Box::pin(branch(client, &tree, object, "", detailed, now, &mut rows)).await;
        }
    }
    let header: &[&str] = if detailed {
        &["KIND/NAME", "STATUS", "HEALTH", "AGE", "REASON", "MESSAGE"]
    } else {
        &["KIND/NAME", "STATUS", "HEALTH", "MESSAGE"]
    };
    context.out.table(header, &rows);
    Ok(())
}

async fn branch(
    client: &ClusterClient,
    tree: &Tree,
    object: &Manifest,
    indent: &str,
    detailed: bool,
    now: Timestamp,
    rows: &mut Vec<Vec<String>>,
) {
    /// Deeper is nobody's tree.
    const DEEPEST: usize = 24;
    if indent.len() > DEEPEST {
        return;
    }
    let children = tree.children(object);
    for (index, child) in children.iter().enumerate() {
        let is_last = index + 1 == children.len();
        let (mark, next) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
        let live = client.get_at(&child.gvk(), child.namespace(), child.name().unwrap_or_default()).await;
        let health = live.ok().flatten().and_then(|live| health::assess(&live));
        let (status, message) =
            health.map(|health| (health.status.to_string(), health.message)).unwrap_or_default();
        let name = format!("{indent}{mark}{}/{}", child.kind(), child.name().unwrap_or_default());
        let mut row = vec![name, String::new(), status];
        if detailed {
            row.push(born(child, now));
            row.push(String::new());
        }
        row.push(message);
        rows.push(row);
        Box::pin(branch(client, tree, child, &format!("{indent}{next}"), detailed, now, rows)).await;
    }
}

fn born(object: &Manifest, now: Timestamp) -> String {
    let at = object.value().pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    at.and_then(|at| at.parse().ok()).map(|at| age(at, now)).unwrap_or_default()
}
