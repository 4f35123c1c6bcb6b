//! The objects of an Application as rows: sync, health, hook, and the message of the last sync.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use plumb_core::health;
use plumb_core::object::GroupVersionKind;
use plumb_crd::Application;
use plumb_crd::application::ResourceStatus;
use plumb_kube::ClusterClient;

/// One line of `app get`, `app sync` and `app wait`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectRow {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The sync status; for a hook of the last sync, its phase.
    pub(crate) status: String,
    /// The health status; for a hook of the last sync, its result.
    pub(crate) health: String,
    /// The hook type, such as `PreSync`; empty for other objects.
    pub(crate) hook: String,
    pub(crate) message: String,
}

pub(crate) const COLUMNS: [&str; 8] =
    ["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE"];

impl ObjectRow {
    pub(crate) fn row(&self) -> Vec<String> {
        let cells = [
            &self.group,
            &self.kind,
            &self.namespace,
            &self.name,
            &self.status,
            &self.health,
            &self.hook,
            &self.message,
        ];
        cells.map(Clone::clone).into()
    }

    /// The identity of the object.
    pub(crate) fn key(&self) -> (String, String, String, String, String) {
        (self.group.clone(), self.kind.clone(), self.namespace.clone(), self.name.clone(), self.hook.clone())
    }
}

/// The objects in the order of the last sync, then the others.
pub(crate) fn object_rows(application: &Application) -> Vec<ObjectRow> {
    type Place<'a> = (&'a str, &'a str, &'a str, &'a str);
    let mut open: BTreeMap<Place<'_>, &ResourceStatus> = BTreeMap::new();
    for resource in &application.status.resources {
        open.insert((&resource.group, &resource.kind, &resource.namespace, &resource.name), resource);
    }
    let result = application.status.operation_state.as_ref().and_then(|state| state.sync_result.as_deref());
    let mut states = Vec::new();
    for entry in result.map(|result| result.resources.as_slice()).unwrap_or_default() {
        let known = open.remove(&(
            entry.group.as_str(),
            entry.kind.as_str(),
            entry.namespace.as_str(),
            entry.name.as_str(),
        ));
        let mut state = ObjectRow {
            group: entry.group.clone(),
            version: entry.version.clone(),
            kind: entry.kind.clone(),
            namespace: entry.namespace.clone(),
            name: entry.name.clone(),
            hook: entry.hook_type.clone(),
            message: entry.message.clone(),
            ..ObjectRow::default()
        };
        match known {
            _ if !entry.hook_type.is_empty() => {
                state.status.clone_from(&entry.hook_phase);
                state.health.clone_from(&entry.status);
            }
            Some(resource) => {
                state.status.clone_from(&resource.status);
                state.health = stored_health(resource);
            }
            None => state.status.clone_from(&entry.status),
        }
        states.push(state);
    }
    states.extend(application.status.resources.iter().filter_map(|resource| {
        let place = (
            resource.group.as_str(),
            resource.kind.as_str(),
            resource.namespace.as_str(),
            resource.name.as_str(),
        );
        open.contains_key(&place).then(|| of_resource(resource))
    }));
    states
}

fn of_resource(resource: &ResourceStatus) -> ObjectRow {
    ObjectRow {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        namespace: resource.namespace.clone(),
        name: resource.name.clone(),
        status: resource.status.clone(),
        health: stored_health(resource),
        hook: if resource.hook { "Hook".to_owned() } else { String::new() },
        message: match (resource.requires_deletion_confirmation, resource.requires_pruning && !resource.hook)
        {
            (true, true) => "requires pruning and confirmation".to_owned(),
            (false, true) => "requires pruning".to_owned(),
            (_, false) => String::new(),
        },
    }
}

fn stored_health(resource: &ResourceStatus) -> String {
    resource.health.as_ref().map(|health| health.status.clone()).unwrap_or_default()
}

/// How many objects are read at the same time.
const AT_ONCE: usize = 16;

/// Kinds without a health status. They need not be read.
const WITHOUT_HEALTH: [&str; 10] = [
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "NetworkPolicy",
    "PriorityClass",
    "LimitRange",
];

/// True if the live object must be read to know its health.
fn needs_health(state: &ObjectRow) -> bool {
    state.health.is_empty() && state.hook.is_empty() && !WITHOUT_HEALTH.contains(&state.kind.as_str())
}

/// The same for a client without discovered kinds. Discovery runs only if an object needs it.
pub(crate) async fn read_health(client: &ClusterClient, states: &mut [ObjectRow]) {
    if states.iter().any(needs_health) && client.discover().await.is_ok() {
        fill_health(client, states).await;
    }
}

/// Fills in missing health from the live objects. Objects that may not be read stay without.
pub(super) async fn fill_health(client: &ClusterClient, states: &mut [ObjectRow]) {
    let wanted = states.iter_mut().filter(|state| needs_health(state));
    futures::stream::iter(wanted)
        .for_each_concurrent(AT_ONCE, |state| async {
            let gvk = GroupVersionKind {
                group: state.group.clone(),
                version: state.version.clone(),
                kind: state.kind.clone(),
            };
            let namespace = Some(state.namespace.as_str()).filter(|namespace| !namespace.is_empty());
            match client.get_at(&gvk, namespace, &state.name).await {
                Ok(Some(live)) => {
                    if let Some(health) = health::assess(&live) {
                        health.status.as_str().clone_into(&mut state.health);
                        if state.message.is_empty() {
                            state.message = health.message;
                        }
                    }
                }
                Ok(None) => "Missing".clone_into(&mut state.health),
                Err(_) => {}
            }
        })
        .await;
}
