//! Asking the engine to look again, and waiting until it has.

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

/// Nobody answers: is there an engine at all?
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How hard the engine shall look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// At the newest commit.
    Normal,
    /// And render it anew, whatever is cached.
    Hard,
}

impl Refresh {
    /// From the two flags.
    pub(crate) fn wanted(refresh: bool, hard: bool) -> Option<Self> {
        if hard { Some(Self::Hard) } else { refresh.then_some(Self::Normal) }
    }
}

/// Asks for a look at Git and the cluster, and waits until it was made.
pub(crate) async fn refresh(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    how: Refresh,
) -> Result<Application, CommandError> {
    let word = match how {
        Refresh::Normal => "normal",
        Refresh::Hard => "hard",
    };
    let annotations = json!({REFRESH: word, REFRESH_TIMESTAMP: Timestamp::now().to_string()});
    patch(client, target, json!({"metadata": {"annotations": annotations}})).await?;
    let mut events = follow(client, target)?;
    let mut reminded = false;
    loop {
        let event = if reminded {
            events.next().await
        } else if let Ok(event) = tokio::time::timeout(PATIENCE, events.next()).await {
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
            None => return Err(CommandError::new("the watch ended")),
        }
    }
}

/// Follows one Application.
pub(crate) fn follow(client: &ClusterClient, target: &Target) -> Result<ObjectStream, CommandError> {
    let selection = Selection {
        namespace: target.namespace.clone(),
        labels: None,
        fields: Some(format!("metadata.name={}", target.name)),
    };
    client
        .watch_objects(&target.gvk, selection)
        .map_err(|error| CommandError::api(format!("watch application {}", target.name), error))
}

/// What to say when nothing happens.
pub(crate) fn no_engine(target: &Target) -> String {
    format!(
        "nobody has looked at {} for {} s: is `plumb run` at work on its namespace?",
        target.name,
        PATIENCE.as_secs()
    )
}
