//! What users paused.

use plumb_core::app::Pause;
use plumb_core::object::ObjectKey;
use plumb_crd::Application;

use crate::app_run::{AppInputs, AppRun};
use crate::compare::run::Compared;

/// Everything of the app that a user paused: the app itself first, then its objects.
pub(crate) fn pauses(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
) -> Vec<(ObjectKey, Pause)> {
    let app = inputs.pause(run.now).map(|pause| (Application::key(run.id()), pause.clone()));
    let objects = compared.live.objects.iter();
    app.into_iter()
        .chain(objects.filter_map(|(key, live)| Some((key.clone(), inputs.pause_of(key, live, run.now)?))))
        .collect()
}
