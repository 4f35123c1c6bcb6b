//! Removes the finalizer of a deleted project once no app refers to it.

use std::sync::Arc;
use std::time::Duration;

use plumb_core::object::Manifest;
use plumb_core::sync::deletion::CASCADE as FINALIZER;
use plumb_kube::{Backoff, OwnWrite, Patch, PatchOptions, Target, WriteError};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::apps::deleting_projects::finalizers;
use crate::engine::Engine;

/// The first and the longest wait after the API server failed.
const RETRY_DELAY: Duration = Duration::from_secs(3);
const LONGEST_DELAY: Duration = Duration::from_mins(5);

/// Removes the finalizer of deleted projects once no app refers to them.
pub(crate) async fn release_projects(engine: Arc<Engine>) {
    let mut backoff = Backoff::new(RETRY_DELAY, LONGEST_DELAY);
    loop {
        engine.deleting_projects.asked.notified().await;
        for project in engine.deleting_projects.free(&engine.registry.all()) {
            let name = project.name().unwrap_or_default();
            match without_finalizer(&engine, &project).await {
                Ok(()) => {
                    backoff.reset();
                    info!(project = name, "no app refers to the project: removed the finalizer");
                }
                Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {}
                Err(error) => {
                    warn!(project = name, %error, "cannot remove the finalizer of the project");
                    tokio::time::sleep(backoff.next_wait()).await;
                    engine.deleting_projects.asked.notify_one();
                }
            }
        }
    }
}

async fn without_finalizer(engine: &Engine, project: &Manifest) -> Result<(), WriteError> {
    let Some(target) = Target::of(project) else { return Ok(()) };
    engine.home.gate.write_own(&release(target, project)).await.map(drop)
}

/// Removes the finalizer, unless the project changed since it was read.
fn release(target: Target, project: &Manifest) -> OwnWrite {
    let others: Vec<&Value> = finalizers(project).filter(|finalizer| **finalizer != FINALIZER).collect();
    let patch = json!({"metadata": {"finalizers": others, "resourceVersion": project.resource_version()}});
    let options =
        PatchOptions { field_manager: Some("argocd-application-controller".to_owned()), subresource: None };
    OwnWrite::Patch { target, patch: Patch::Merge(patch), options }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(finalizers: &[&str], is_terminating: bool) -> Manifest {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "team", "namespace": "argocd", "resourceVersion": "7", "finalizers": finalizers},
        });
        if is_terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-15T19:00:00Z");
        }
        Manifest::new(object).unwrap()
    }

    #[test]
    fn finalizers_of_others_stay() {
        let project = project(&["a.example.com/one", FINALIZER], true);
        let OwnWrite::Patch { patch: Patch::Merge(patch), .. } =
            release(Target::of(&project).unwrap(), &project)
        else {
            panic!("a patch");
        };
        let wanted = json!({"metadata": {"finalizers": ["a.example.com/one"], "resourceVersion": "7"}});
        assert_eq!(patch, wanted);
    }
}
