//! Health that depends on other objects: the Secret that a controller creates for an object, the Service that a
//! webhook calls.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use plumb_core::health::{
    Backing, ExpectedSecret, Health, HealthStatus, ProgressLimits, SecretOwner, SecretState, assess_webhook,
    expected_secret, webhook_services, with_secret,
};
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_kube::LiveStore;
use serde_json::{Value, json};

use super::history::HealthState;

/// Watch events of different kinds arrive in any order, and operators need time to create objects. A dependency that
/// has been missing for less than this counts as in progress.
const GRACE: SignedDuration = SignedDuration::from_secs(30);
/// The same for webhooks: a webhook and the pods that serve it are often applied together.
const WEBHOOK_GRACE: SignedDuration = SignedDuration::from_mins(2);

/// How soon a webhook configuration is checked again. The pods that serve it may belong to another app, whose changes
/// do not trigger a run of this app. A check costs no request.
const RECHECK_UNHEALTHY_WEBHOOK: SignedDuration = SignedDuration::from_secs(15);
const RECHECK_HEALTHY_WEBHOOK: SignedDuration = SignedDuration::from_mins(2);

/// True if the app's project permits objects in this namespace.
pub(crate) type PermitsNamespace<'a> = dyn Fn(&str) -> bool + Sync + 'a;

/// Looks up what the objects of an app depend on.
pub(crate) struct Dependencies<'a> {
    pub(crate) store: &'a LiveStore,
    /// Nothing is said about objects in other namespaces.
    pub(crate) permits_namespace: &'a PermitsNamespace<'a>,
    /// Limits by kind. A limit that is shorter than the grace periods above replaces them.
    pub(crate) patience: &'a ProgressLimits,
    pub(crate) now: Timestamp,
}

impl Dependencies<'_> {
    /// The health with the dependencies taken into account, and when to check again if no watch event will report the
    /// change.
    pub(crate) fn judge(
        &self,
        state: &HealthState,
        key: &ObjectKey,
        object: &Manifest,
        health: Option<Health>,
    ) -> (Option<Health>, Option<Timestamp>) {
        if object.is_terminating() {
            return (health, None);
        }
        if let (Some(judged), Some(expected)) = (&health, expected_secret(object))
            && judged.status == HealthStatus::Healthy
            && self.permits(&expected.secret)
            && let Some(secret) = state_of(self.store, &expected)
        {
            let health = with_secret(judged.clone(), &expected, &secret);
            let grace = GRACE.min(self.patience.with(object));
            let (health, until) = self.with_grace(state, key, health, grace);
            return (Some(health), until);
        }
        if health.is_none() && object.group() == "admissionregistration.k8s.io" {
            let services = webhook_services(object);
            let backings: BTreeMap<ObjectKey, Backing> = services
                .into_iter()
                .filter(|service| self.permits(service))
                .filter_map(|service| Some((service.clone(), backing(self.store, &service)?)))
                .collect();
            if let Some(health) = assess_webhook(object, &backings) {
                let is_healthy = backings.values().all(|backing| *backing == Backing::Ready);
                let grace = WEBHOOK_GRACE.min(self.patience.with(object));
                let (health, until) = self.with_grace(state, key, health, grace);
                let again =
                    self.now + if is_healthy { RECHECK_HEALTHY_WEBHOOK } else { RECHECK_UNHEALTHY_WEBHOOK };
                return (Some(health), Some(until.map_or(again, |until| until.min(again))));
            }
        }
        (health, None)
    }

    fn permits(&self, key: &ObjectKey) -> bool {
        key.namespace.as_deref().is_none_or(self.permits_namespace)
    }

    /// A dependency that has been missing for a short time only counts as in progress.
    fn with_grace(
        &self,
        state: &HealthState,
        key: &ObjectKey,
        health: Health,
        grace: SignedDuration,
    ) -> (Health, Option<Timestamp>) {
        if health.status == HealthStatus::Healthy {
            state.clear_missing(key);
            return (health, None);
        }
        let until = state.missing_since(key, self.now) + grace;
        if self.now < until {
            return (Health { status: HealthStatus::Progressing, ..health }, Some(until));
        }
        (health, None)
    }
}

/// The state of the expected Secret; `None` if the Secrets are not listed. Uses names, owners and uids only: the store
/// does not hold the contents of untracked Secrets.
fn state_of(store: &LiveStore, expected: &ExpectedSecret) -> Option<SecretState> {
    let secrets = GroupKind::new("", "Secret");
    if !store.is_listed(&secrets) {
        return None;
    }
    let Some(secret) = store.node(&expected.secret) else { return Some(SecretState::Missing) };
    if matches!(expected.ownership, SecretOwner::Annotated { .. } | SecretOwner::Shared) {
        return Some(SecretState::Present);
    }
    let owner = |uid: &plumb_kube::Uid| match store.node_of(uid) {
        Some(owner) => json!({"uid": uid.to_string(), "kind": owner.key.kind, "name": owner.key.name}),
        None => json!({"uid": uid.to_string()}),
    };
    let owners: Vec<Value> = secret.parents.iter().map(owner).collect();
    Some(expected.state(Some(&json!({"ownerReferences": owners}))))
}

/// Whether ready pods serve a Service; `None` if deciding that would need a request to the API server.
fn backing(store: &LiveStore, service: &ObjectKey) -> Option<Backing> {
    if !store.is_listed(&GroupKind::new("", "Service")) {
        return None;
    }
    if !store.contains(service) {
        return Some(Backing::Absent);
    }
    let whole = store.get_kept(service)?;
    let selector =
        whole.value().pointer("/spec/selector")?.as_object().filter(|labels| !labels.is_empty())?.clone();
    let is_ready = |pod: &Manifest| {
        let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array);
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
    };
    let is_selected = |pod: &Manifest| {
        selector
            .iter()
            .all(|(label, value)| pod.label(label).is_some_and(|found| Some(found) == value.as_str()))
    };
    let namespace = service.namespace.as_deref()?;
    let mut pods = store
        .in_namespace(namespace)
        .into_iter()
        .filter(|node| node.key.kind == "Pod" && node.key.group.is_empty())
        .filter_map(|node| store.get_kept(&node.key));
    Some(if pods.any(|pod| is_selected(&pod) && is_ready(&pod)) { Backing::Ready } else { Backing::Empty })
}
