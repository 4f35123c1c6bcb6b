//! Requests runs when a repository or a cluster is registered, changed or removed.

use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use plumb_crd::settings::SecretData;
use plumb_kube::{ObjectEvent, Selection};
use tokio::sync::oneshot;

use super::first_list::FirstList;
use super::stream::stream;
use crate::cluster::clusters::SecretChange;
use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// Watches the Secrets that describe repositories and clusters. A repository concerns every app, a cluster those that may
/// be deployed to it.
pub(crate) async fn watch_secrets(engine: Arc<Engine>, listed: oneshot::Sender<()>) {
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    let selection = Selection {
        namespace: Some(engine.options.namespace.clone()),
        labels: Some("argocd.argoproj.io/secret-type".to_owned()),
        fields: None,
    };
    let mut listed = FirstList::new(listed);
    let mut stream = stream(&engine, &gvk, selection).await;
    while let Some(event) = stream.next().await {
        let (name, object) = match event {
            ObjectEvent::Seen(object) => (object.name().unwrap_or_default().to_owned(), Some(object)),
            ObjectEvent::Gone { key, .. } => (key.name.clone(), None),
            ObjectEvent::Listed => {
                engine.clusters.note_listed();
                engine.set_signals.clusters_listed();
                engine.request_remote();
                listed.signal();
                continue;
            }
            ObjectEvent::Trouble(_) => continue,
        };
        let secret = object.as_ref().and_then(|object| SecretData::read(object.value()).ok());
        let secret = secret.map(|(secret, _)| secret);
        let (cluster, other) = match secret {
            Some(secret) if secret.secret_type() == Some("cluster") => (Some(secret), None),
            other => (None, other),
        };
        engine.set_signals.cluster_secret(&name, cluster.as_ref());
        match engine.clusters.note_secret(&name, cluster.as_ref()) {
            SecretChange::Nothing => {}
            SecretChange::Changed => engine.request_remote(),
            SecretChange::RefreshHome => {
                engine.restart.ask("a user asked for it in the Secret of the cluster");
            }
        }
        if engine.config.note_secret(&name, other) {
            engine.set_signals.settings();
            engine.request_all(Trigger::new(RefreshDepth::Git, TriggerReason::Settings));
        }
    }
}
