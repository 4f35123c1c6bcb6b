//! Following an operation until it has ended.

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_crd::application::OperationState;
use plumb_kube::{ClusterClient, ObjectEvent, Target};

use super::refresh::{ENGINE_TIMEOUT, follow, no_engine};
use crate::context::Context;
use crate::error::CommandError;
use crate::output::Format;
use crate::select::app::parse;
use crate::view::progress::Progress;

/// Follows the operation that was requested until it has ended, and prints its progress. `known` is the Application
/// before the request, and `output` the format of the command's result.
pub(crate) async fn follow_operation(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    known: &Application,
    output: Format,
) -> Result<(Application, OperationState), CommandError> {
    let before = known.status.operation_state.as_ref().map(|state| state.started_at);
    let mut events = follow(client, target)?;
    let mut progress = Progress::new(context.out, output, known);
    let mut has_begun = false;
    loop {
        let event = if has_begun {
            progress.next(&mut events).await
        } else if let Ok(event) = tokio::time::timeout(ENGINE_TIMEOUT, progress.next(&mut events)).await {
            event
        } else {
            has_begun = true;
            progress.note(&no_engine(target));
            continue;
        };
        match event {
            Some(ObjectEvent::Seen(manifest)) => {
                let application = parse(&manifest)?;
                let Some(state) = application.status.operation_state.clone() else { continue };
                has_begun = true;
                progress.show(&application, Timestamp::now());
                // Timestamps have whole seconds. A state from the same second is the new one: requesting the
                // operation removed the state of the previous one.
                let is_new = before.is_none_or(|before| state.started_at >= before);
                let has_ended = matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error");
                if has_ended && application.operation.is_none() && is_new {
                    progress.end();
                    return Ok((application, *state));
                }
            }
            Some(ObjectEvent::Gone { .. }) => {
                return Err(CommandError::new(format!("application {} was deleted", target.name)));
            }
            Some(ObjectEvent::Trouble(trouble)) => progress.note(&trouble),
            Some(ObjectEvent::Listed) => {}
            None => {
                return Err(CommandError::new(format!("the watch of application {} ended", target.name)));
            }
        }
    }
}
