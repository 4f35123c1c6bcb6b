//! The objects of an Application with the objects that they own, such as replica sets and pods.

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

/// The metadata of all objects in the namespaces of an app, with their owner references.
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

    /// The object of a row.
    pub(crate) fn find(&self, state: &ObjectRow) -> Option<&Manifest> {
        self.objects.iter().find(|object| {
            object.group() == state.group
                && object.kind() == state.kind
                && object.name() == Some(&state.name)
                && object.namespace().unwrap_or_default() == state.namespace
        })
    }

    /// The objects that an object owns.
    pub(super) fn children(&self, object: &Manifest) -> Vec<&Manifest> {
        let indices = object.uid().and_then(|uid| self.children.get(uid));
        let mut owned: Vec<&Manifest> =
            indices.into_iter().flatten().filter_map(|index| self.objects.get(*index)).collect();
        owned.sort_by_key(|object| (object.kind().to_owned(), object.name().unwrap_or_default().to_owned()));
        owned
    }

    /// An object and all objects below it.
    pub(crate) fn below<'a>(&'a self, object: &'a Manifest) -> Vec<&'a Manifest> {
        let mut all = vec![object];
        let mut next = 0;
        while let Some(object) = all.get(next).copied() {
            next += 1;
            for child in self.children(object) {
                // Owner references may form a circle.
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
    let mut printer = TreePrinter { client, tree: &tree, detailed, now: Timestamp::now(), rows: Vec::new() };
    for root in &roots {
        let object = tree.find(root);
        let name = format!("{}/{}", root.kind, root.name);
        printer.add(object, name, [&root.status, &root.health, &root.message]);
        if let Some(object) = object {
            Box::pin(printer.branch(object, "")).await;
        }
    }
    let rows = printer.rows;
    let header: &[&str] = if detailed {
        &["KIND/NAME", "STATUS", "HEALTH", "AGE", "REASON", "MESSAGE"]
    } else {
        &["KIND/NAME", "STATUS", "HEALTH", "MESSAGE"]
    };
    context.out.table(header, &rows);
    Ok(())
}

/// Collects the rows of the tree.
struct TreePrinter<'a> {
    client: &'a ClusterClient,
    tree: &'a Tree,
    /// With the columns AGE and REASON.
    detailed: bool,
    now: Timestamp,
    rows: Vec<Vec<String>>,
}

impl TreePrinter<'_> {
    fn add(&mut self, object: Option<&Manifest>, name: String, [status, health, message]: [&str; 3]) {
        let mut row = vec![name, status.to_owned(), health.to_owned()];
        if self.detailed {
            row.push(object.map(|object| age_of(object, self.now)).unwrap_or_default());
            row.push(String::new());
        }
        row.push(message.to_owned());
        self.rows.push(row);
    }

    /// Everything below an object.
    async fn branch(&mut self, object: &Manifest, indent: &str) {
        /// Owner references may form a circle.
        const DEEPEST: usize = 24;
        if indent.len() > DEEPEST {
            return;
        }
        let children = self.tree.children(object);
        for (index, child) in children.iter().enumerate() {
            let is_last = index + 1 == children.len();
            let (mark, next) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
            let name = child.name().unwrap_or_default();
            let live = self.client.get_at(&child.gvk(), child.namespace(), name).await;
            let health = live.ok().flatten().and_then(|live| health::assess(&live));
            let (status, message) =
                health.map(|health| (health.status.to_string(), health.message)).unwrap_or_default();
            let name = format!("{indent}{mark}{}/{name}", child.kind());
            self.add(Some(child), name, ["", &status, &message]);
            Box::pin(self.branch(child, &format!("{indent}{next}"))).await;
        }
    }
}

fn age_of(object: &Manifest, now: Timestamp) -> String {
    object.created_at().map(|at| age(at, now)).unwrap_or_default()
}
