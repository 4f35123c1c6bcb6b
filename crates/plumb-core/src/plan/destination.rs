//! The destination namespace: making it, and keeping it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::order::Placed;
use super::{Action, Payload, PlanInput, Stage, Step, StepId, SyncPhase, WaitsFor, Why};
use crate::app::ManagedNamespace;
use crate::desired::{SYNC_OPTIONS, Wave};
use crate::object::{Manifest, ObjectKey};

/// True for the destination namespace if an option of the app or of the operation asks for it. A sync does not delete what it
/// is asked to make, whatever left Git.
pub(super) fn is_asked_for(input: &PlanInput<'_>, key: &ObjectKey) -> bool {
    let namespace = input.namespace;
    let is_destination = namespace.name.as_deref().is_some_and(|name| *key == ObjectKey::of_namespace(name));
    let is_asked_for =
        namespace.is_asked_for || namespace.managed.is_some() || input.request.options.create_namespace;
    is_destination && is_asked_for
}

/// True if a namespace lacks labels or annotations that the app manages on it.
pub fn lacks_metadata(live: &Manifest, managed: &ManagedNamespace) -> bool {
    let has = |field: &str, key: &str, text: &str| {
        let entries = live.value().pointer("/metadata").and_then(|metadata| metadata.get(field));
        entries.and_then(|entries| entries.get(key)).and_then(Value::as_str) == Some(text)
    };
    let labels = managed.labels.iter().all(|(key, text)| has("labels", key, text));
    let annotations = managed.annotations.iter().all(|(key, text)| has("annotations", key, text));
    !(labels && annotations)
}

/// `CreateNamespace=true`: unless Git has the namespace itself, as an object or as a hook.
pub(super) fn namespace_step(input: &PlanInput<'_>) -> Option<Placed> {
    let name = input.namespace.name.as_deref()?;
    if !input.request.options.create_namespace {
        return None;
    }
    let key = ObjectKey::of_namespace(name);
    let is_hook = input.desired.hooks.iter().any(|hook| {
        hook.manifest.kind() == "Namespace"
            && hook.manifest.group().is_empty()
            && hook.manifest.name() == Some(name)
    });
    if input.desired.objects.contains_key(&key) || is_hook {
        return None;
    }
    let why = match (input.namespace.exists, &input.namespace.managed) {
        (false, _) => Why::NamespaceMissing,
        (true, Some(_)) => Why::NamespaceMetadata,
        (true, None) => return None,
    };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), Value::String(name.to_owned()));
    if let Some(managed) = &input.namespace.managed {
        if !managed.labels.is_empty() {
            metadata.insert("labels".to_owned(), json!(managed.labels));
        }
        // Argo CD marks the namespace so that it does not apply it client-side.
        let mut annotations = managed.annotations.clone();
        annotations.insert(SYNC_OPTIONS.to_owned(), "ServerSideApply=true".to_owned());
        metadata.insert("annotations".to_owned(), json!(annotations));
    }
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let manifest = Manifest::new(manifest).ok()?;
    Some(Placed {
        wave: Wave(0),
        step: Step {
            id: StepId { phase: SyncPhase::PreSync, key },
            version: "v1".to_owned(),
            action: Action::CreateNamespace { manifest: Payload(Arc::new(manifest)) },
            stage: Stage::Foundations,
            can_be_tried: true,
            why,
            waits_for: WaitsFor::Health,
        },
        defines: None,
        last: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_what_the_app_manages_or_lacks_it() {
        let live = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "prod", "labels": {"team": "a", "other": "x"}, "annotations": {"contact": "b"}}});
        let live = Manifest::new(live).expect("an object");
        let map = |entries: &[(&str, &str)]| {
            entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
        };
        let lacks = |labels: &[(&str, &str)], annotations: &[(&str, &str)]| {
            lacks_metadata(&live, &ManagedNamespace { labels: map(labels), annotations: map(annotations) })
        };
        assert!(!lacks(&[], &[]) && !lacks(&[("team", "a")], &[("contact", "b")]));
        assert!(lacks(&[("team", "b")], &[]) && lacks(&[("stage", "a")], &[]));
        assert!(lacks(&[("team", "a")], &[("contact", "c")]) && lacks(&[], &[("team", "a")]));
    }
}
