//! What an object depends on without saying so: the Secret that it promises, the Service that a webhook calls.

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

/// Watches do not tell things in the order in which they happened, and operators need a moment: what is missing for
/// less than this is on its way.
const GRACE: SignedDuration = SignedDuration::from_secs(30);
/// A webhook and the pods that answer it are often applied together.
const WEBHOOK_GRACE: SignedDuration = SignedDuration::from_mins(2);

/// How soon a webhook configuration is looked at again: the pods behind it may be another app's, whose changes do not
/// wake this one. It costs no request.
const WEBHOOK_ILL: SignedDuration = SignedDuration::from_secs(15);
const WEBHOOK_WELL: SignedDuration = SignedDuration::from_mins(2);

/// What is around an app's objects.
pub(crate) struct Dependencies<'a> {
    pub(crate) store: &'a LiveStore,
    /// A kind that may be on its way for less than the times above is given less.
    pub(crate) patience: &'a ProgressLimits,
    pub(crate) now: Timestamp,
}

impl Dependencies<'_> {
    /// A judgement with the surroundings taken into account, and when to look again because nothing will say that it
    /// changed.
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
            && let Some(kept) = state_of(self.store, &expected)
        {
            let told = with_secret(judged.clone(), &expected, &kept);
            let grace = GRACE.min(self.patience.with(object));
            let (health, until) = self.patient(state, key, told, grace);
            return (Some(health), until);
        }
        if health.is_none() && object.group() == "admissionregistration.k8s.io" {
            let services = webhook_services(object);
            let known: BTreeMap<ObjectKey, Backing> = services
                .into_iter()
                .filter_map(|service| Some((service.clone(), backing(self.store, &service)?)))
                .collect();
            if let Some(told) = assess_webhook(object, &known) {
                let is_well = known.values().all(|backing| *backing == Backing::Ready);
                let grace = WEBHOOK_GRACE.min(self.patience.with(object));
                let (health, until) = self.patient(state, key, told, grace);
                let again = self.now + if is_well { WEBHOOK_WELL } else { WEBHOOK_ILL };
                return (Some(health), Some(until.map_or(again, |until| until.min(again))));
            }
        }
        (health, None)
    }

    /// What is missing only now may come in a moment.
    fn patient(
        &self,
        state: &HealthState,
        key: &ObjectKey,
        health: Health,
        grace: SignedDuration,
    ) -> (Health, Option<Timestamp>) {
        if health.status == HealthStatus::Healthy {
            state.found(key);
            return (health, None);
        }
        let until = state.missing_since(key, self.now) + grace;
        if self.now < until {
            return (Health { status: HealthStatus::Progressing, ..health }, Some(until));
        }
        (health, None)
    }
}

/// Is the expected Secret there, as far as the store can tell? Only names, owners and uids are looked at: contents of Secrets
/// that nobody tracks are not even in the store.
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

/// What is behind a Service; `None` where that cannot be told without asking the server.
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
    let is_behind = |pod: &Manifest| {
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
    Some(if pods.any(|pod| is_behind(&pod) && is_ready(&pod)) { Backing::Ready } else { Backing::Empty })
}
