//! Requesting a refresh, and waiting for it.

use std::time::Duration;

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, ObjectEvent, ObjectStream, Selection, Target};
use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::select::app::{parse, patch};

const REFRESH: &str = "argocd.argoproj.io/refresh";
const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";

/// After this time without a reaction, a note asks whether an engine runs.
pub(super) const ENGINE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the engine refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// Fetches Git and compares.
    Normal,
    /// The same, and renders again without the cache.
    Hard,
}

impl Refresh {
    /// From `--refresh` and `--hard-refresh`.
    pub(crate) fn wanted(refresh: bool, hard: bool) -> Option<Self> {
        if hard { Some(Self::Hard) } else { refresh.then_some(Self::Normal) }
    }
}

/// Requests a refresh, and waits until the engine has done it.
pub(crate) async fn refresh(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    how: Refresh,
) -> Result<Application, CommandError> {
    let value = match how {
        Refresh::Normal => "normal",
        Refresh::Hard => "hard",
    };
    let annotations = json!({REFRESH: value, REFRESH_TIMESTAMP: Timestamp::now().to_string()});
    patch(client, target, json!({"metadata": {"annotations": annotations}})).await?;
    let mut events = follow(client, target)?;
    let mut reminded = false;
    loop {
        let event = if reminded {
            events.next().await
        } else if let Ok(event) = tokio::time::timeout(ENGINE_TIMEOUT, events.next()).await {
            event
        } else {
            reminded = true;
            context.out.note(&no_engine(target));
            continue;
        };
        match event {
            Some(ObjectEvent::Seen(manifest)) => {
                let application = parse(&manifest)?;
                if application.annotation(REFRESH).is_none() {
                    return Ok(application);
                }
            }
            Some(ObjectEvent::Gone { .. }) => {
                return Err(CommandError::new(format!("application {} was deleted", target.name)));
            }
            Some(ObjectEvent::Trouble(trouble)) => context.out.note(&trouble),
            Some(ObjectEvent::Listed) => {}
            None => return Err(CommandError::new("the watch of the application ended")),
        }
    }
}

/// Watches one Application.
pub(super) fn follow(client: &ClusterClient, target: &Target) -> Result<ObjectStream, CommandError> {
    let selection = Selection {
        namespace: target.namespace.clone(),
        labels: None,
        fields: Some(format!("metadata.name={}", target.name)),
    };
    client
        .watch_objects(&target.gvk, selection)
        .map_err(|error| CommandError::api(format!("watch application {}", target.name), error))
}

/// The note when nothing happens.
pub(super) fn no_engine(target: &Target) -> String {
    format!(
        "{} has not been reconciled for {} s: is `plumb run` running for this namespace?",
        target.name,
        ENGINE_TIMEOUT.as_secs()
    )
}
