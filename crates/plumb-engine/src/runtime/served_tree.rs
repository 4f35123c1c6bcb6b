//! The objects of an app with all objects below them, as the server shows them.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::app::AppId;
use plumb_core::health;
use plumb_core::object::ObjectKey;
use plumb_crd::application::HealthStatus;
use plumb_crd::{Application, to_app};
use plumb_kube::{LiveStore, Node, Uid};

use super::served::Leader;
use crate::apps::context::{AppContext, Unavailable};
use crate::compare::orphans;

/// An object in the tree of an app.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// The object as the store knows it.
    pub node: Node,
    /// The objects that own it.
    pub parents: Vec<Node>,
    /// Its health, if its kind has one: status and message.
    pub health: Option<(&'static str, String)>,
}

/// The tree of an app.
#[derive(Clone, Debug, Default)]
pub struct AppTree {
    /// The objects that the app tracks, and all below them.
    pub nodes: Vec<TreeNode>,
    /// The objects that Git has and the cluster has not: key and version.
    pub missing: Vec<(ObjectKey, String)>,
    /// The objects in the namespace of the app that belong to no app, if its project looks for them, and all below them.
    pub orphans: Vec<TreeNode>,
}

const HEALTH: [&str; 6] = ["Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown"];

impl Leader {
    /// The tree of an app; `None` if its cluster is not connected. Nothing that the project does not permit is in it.
    pub fn tree(&self, namespace: &str, name: &str) -> Option<AppTree> {
        let application = self.whole(namespace, name)?;
        let app = to_app(&application).ok()?;
        let context = match self.engine.context(&app) {
            Ok(context) => context,
            Err(Unavailable::NotYet | Unavailable::LeftAlone | Unavailable::ClusterAway(_)) => return None,
            Err(
                Unavailable::ClusterUnknown(_) | Unavailable::ClusterUnclear(_) | Unavailable::Refused(_),
            ) => {
                return Some(AppTree::default());
            }
        };
        let store = &context.cluster.store;
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let instance = id.instance_name(&self.engine.options.namespace);
        let known = known_health(&application);
        let shown = |nodes: Vec<Node>| nodes.into_iter().map(|node| tree_node(store, &known, node)).collect();
        let nodes = permitted(&context, &instance, store.tree(&instance));
        let missing = missing(&context, &application, &nodes);
        let orphans = match (context.project.orphans(), &app.destination.namespace) {
            (Some(rules), Some(namespace)) => {
                let is_permitted = |key: &ObjectKey| context.denies(key).is_none();
                let is_app = |instance: &str| {
                    self.engine.registry.by_instance(instance, &self.engine.options.namespace).is_some()
                };
                let found = orphans::find(store, namespace, rules, is_permitted, is_app);
                with_descendants(&context, found.iter().filter_map(|key| store.node(key)).collect())
            }
            (None, _) | (_, None) => Vec::new(),
        };
        Some(AppTree { nodes: shown(nodes), missing, orphans: shown(orphans) })
    }
}

/// The health of objects as the status of the app has it.
fn known_health(application: &Application) -> BTreeMap<ObjectKey, &HealthStatus> {
    // The first entry of an object counts.
    let resources = application.status.resources.iter().rev();
    resources.filter_map(|resource| Some((resource.key(), resource.health.as_ref()?))).collect()
}

fn tree_node(store: &LiveStore, known: &BTreeMap<ObjectKey, &HealthStatus>, node: Node) -> TreeNode {
    let known = known.get(&node.key).map(|health| {
        let status = HEALTH.into_iter().find(|name| *name == health.status).unwrap_or("Unknown");
        (status, health.message.clone())
    });
    let assessed = || {
        let health = health::assess(&store.get_kept(&node.key)?)?;
        Some((health.status.as_str(), health.message))
    };
    TreeNode {
        parents: node.parents.iter().filter_map(|uid| store.node_of(uid)).collect(),
        health: known.or_else(assessed),
        node,
    }
}

/// True if the namespace of an object is permitted, or if it has none.
fn is_in_reach(context: &AppContext, key: &ObjectKey) -> bool {
    key.namespace.as_deref().is_none_or(|name| context.permits_namespace(name))
}

/// How the project sees an object of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The app tracks it, and the project permits it or not.
    Tracked { is_permitted: bool },
    /// It is below another object, in a namespace that the project permits or not.
    Below { is_in_reach: bool },
}

/// The objects that the project permits, and those below them in namespaces that it permits.
fn permitted(context: &AppContext, instance: &str, nodes: Vec<Node>) -> Vec<Node> {
    let standing = |node: &Node| {
        if node.owner.as_deref() == Some(instance) {
            Standing::Tracked { is_permitted: context.denies(&node.key).is_none() }
        } else {
            Standing::Below { is_in_reach: is_in_reach(context, &node.key) }
        }
    };
    let known: Vec<_> =
        nodes.iter().map(|node| (node.uid.clone(), standing(node), node.parents.clone())).collect();
    let kept = kept(&known);
    nodes.into_iter().filter(|node| kept.contains(&node.uid)).collect()
}

/// The objects that are permitted or below one that is, in whatever order they are listed. References between owners may form
/// a circle, and each object is looked at once.
fn kept<K: Clone + Ord>(nodes: &[(K, Standing, Vec<K>)]) -> BTreeSet<K> {
    let mut below: BTreeMap<&K, Vec<&K>> = BTreeMap::new();
    let (mut kept, mut open) = (BTreeSet::new(), Vec::new());
    for (uid, standing, parents) in nodes {
        match standing {
            Standing::Tracked { is_permitted: true } => open.push(uid),
            Standing::Below { is_in_reach: true } => {
                for parent in parents {
                    below.entry(parent).or_default().push(uid);
                }
            }
            Standing::Tracked { is_permitted: false } | Standing::Below { is_in_reach: false } => {}
        }
    }
    while let Some(uid) = open.pop() {
        if kept.insert(uid.clone()) {
            open.extend(below.get(uid).into_iter().flatten());
        }
    }
    kept
}

/// The objects that the last comparison did not find.
fn missing(context: &AppContext, application: &Application, nodes: &[Node]) -> Vec<(ObjectKey, String)> {
    let found: BTreeSet<&ObjectKey> = nodes.iter().map(|node| &node.key).collect();
    let resources = application.status.resources.iter().filter(|resource| {
        !resource.hook && resource.health.as_ref().is_some_and(|health| health.status == "Missing")
    });
    resources
        .map(|resource| (resource.key(), resource.version.clone()))
        .filter(|(key, _)| context.denies(key).is_none() && !found.contains(key))
        .collect()
}

/// The objects and all below them. References between owners may form a circle.
fn with_descendants(context: &AppContext, roots: Vec<Node>) -> Vec<Node> {
    let mut seen: BTreeSet<Uid> = roots.iter().map(|node| node.uid.clone()).collect();
    let mut all = roots;
    let mut next = 0;
    while let Some(uid) = all.get(next).map(|node| node.uid.clone()) {
        next += 1;
        for child in context.cluster.store.children(&uid) {
            if is_in_reach(context, &child.key) && seen.insert(child.uid.clone()) {
                all.push(child);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_permitted_object_is_kept_in_any_order() {
        let tracked = |is_permitted: bool| Standing::Tracked { is_permitted };
        let below = |is_in_reach: bool| Standing::Below { is_in_reach };
        let nodes = [
            ("pod", below(true), vec!["set"]),
            ("far pod", below(false), vec!["set"]),
            ("set", below(true), vec!["deployment"]),
            ("below the far pod", below(true), vec!["far pod"]),
            ("below the forbidden", below(true), vec!["forbidden"]),
            ("forbidden", tracked(false), vec![]),
            ("deployment", tracked(true), vec![]),
        ];
        assert_eq!(kept(&nodes), BTreeSet::from(["deployment", "pod", "set"]));
    }

    /// A chain that is listed from its end took one pass over all objects for each of its objects.
    #[test]
    fn a_long_chain_takes_no_longer_than_its_length() {
        let n = 200_000u32;
        let chain = (1..n).rev().map(|at| (at, Standing::Below { is_in_reach: true }, vec![at - 1]));
        let mut nodes: Vec<_> = chain.collect();
        nodes.push((0, Standing::Tracked { is_permitted: true }, vec![n - 1]));
        assert_eq!(kept(&nodes).len(), usize::try_from(n).unwrap());
    }
}
