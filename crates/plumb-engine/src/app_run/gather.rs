//! Gathers what Git asks for, and keeps it for later runs.

use std::sync::Arc;

use super::{AppInputs, AppRun};
use crate::queue::RefreshDepth;
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::NotGathered;
use crate::sources::state::GitState;

/// Gathers what Git asks for, or takes what is known if nothing speaks against it.
pub(crate) async fn gather(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    git: &mut GitState,
) -> Result<Arc<Gathered>, NotGathered> {
    let AppInputs { application, app, context } = inputs;
    let known = git.load();
    let sources = &run.engine.sources;
    let parked = &mut git.parked;
    let gathered = sources.gather(application, app, context, run.policy, known.as_ref(), parked).await?;
    let is_known = known.is_some_and(|known| Arc::ptr_eq(&known, &gathered));
    if !is_known {
        git.replace(&gathered);
    }
    // A run that only looks at the cluster takes what is known and learns nothing about Git.
    if !is_known || run.policy.depth > RefreshDepth::Live {
        git.failure = None;
    }
    Ok(gathered)
}
