//! Validating and mutating webhook configurations: do the services behind them answer?
//!
//! A webhook whose service has no endpoint and whose `failurePolicy` is `Fail` blocks every write it matches.
//! The object does not say so itself, so the state of its services is an input. Argo CD has no opinion on it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::Health;
use super::super::read::find_text;
use crate::object::{Manifest, ObjectKey};

/// What is behind a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backing {
    /// At least one endpoint is ready.
    Ready,
    /// The Service is there, no endpoint is ready.
    Empty,
    /// The Service does not exist.
    Absent,
}

/// The services that a webhook configuration calls, in order, each once.
pub fn webhook_services(object: &Manifest) -> Vec<ObjectKey> {
    let mut services = Vec::new();
    for service in webhooks(object).filter_map(service_of) {
        if !services.contains(&service) {
            services.push(service);
        }
    }
    services
}

/// Judges a webhook configuration by the services it calls. `None` for other kinds, and where none of its
/// webhooks calls a service whose state is known.
pub fn assess_webhook(object: &Manifest, services: &BTreeMap<ObjectKey, Backing>) -> Option<Health> {
    let mut ignored = None;
    let mut n_known = 0_usize;
    for webhook in webhooks(object) {
        let Some(service) = service_of(webhook) else { continue };
        let Some(backing) = services.get(&service) else { continue };
        n_known += 1;
        let what = match backing {
            Backing::Ready => continue,
            Backing::Empty => "has no ready endpoint",
            Backing::Absent => "does not exist",
        };
        let name = find_text(webhook, "name").unwrap_or_default();
        let message = format!("webhook {name} calls {service}, which {what}");
        // The default in `v1` is `Fail`.
        if find_text(webhook, "failurePolicy") == Some("Ignore") {
            ignored.get_or_insert(message);
        } else {
            return Some(Health::degraded(message));
        }
    }
    (n_known > 0).then(|| match ignored {
        Some(message) => Health::healthy(format!("{message}; its failures are ignored")),
        None => Health::healthy(""),
    })
}

fn webhooks(object: &Manifest) -> impl Iterator<Item = &Value> {
    let is_webhook = object.group() == "admissionregistration.k8s.io"
        && matches!(object.kind(), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration");
    let entries = is_webhook.then(|| object.value().get("webhooks")).flatten();
    entries.and_then(Value::as_array).into_iter().flatten()
}

fn service_of(webhook: &Value) -> Option<ObjectKey> {
    Some(ObjectKey::new(
        "",
        "Service",
        Some(find_text(webhook, "clientConfig.service.namespace")?.to_owned()),
        find_text(webhook, "clientConfig.service.name")?.to_owned(),
    ))
}
