//! Gathers what Git asks for, and keeps it for later runs.

use std::sync::Arc;

use super::{AppInputs, AppRun};
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
    let gathered = sources.gather(application, app, context, run.policy, known.as_ref()).await?;
    if known.is_none_or(|known| !Arc::ptr_eq(&known, &gathered)) {
        git.replace(&gathered);
    }
    Ok(gathered)
}
