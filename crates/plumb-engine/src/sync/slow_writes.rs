//! Tells what a sync waits for while the API server does not answer its writes.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use plumb_core::object::ObjectKey;
use plumb_core::sync::{SLOW_WRITE, slow_writes};
use plumb_crd::Wire as _;
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::executor::step::WritesUnderWay;
use crate::app_run::{AppInputs, AppRun};
use crate::operation::active::ActiveOperation;

/// How often the message is renewed.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// Writes into the operation's message what its writes wait for, from when they take long. Never ends.
pub(super) async fn tell_of_slow_writes(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    active: &ActiveOperation,
    under_way: &WritesUnderWay,
) -> Infallible {
    let mut is_known = is_known(inputs, active);
    let mut wait = SLOW_WRITE;
    loop {
        tokio::time::sleep(wait).await;
        let ages: Vec<(ObjectKey, Duration)> = {
            let (now, under_way) = (Instant::now(), under_way.lock());
            under_way.iter().map(|(key, since)| (key.clone(), now.duration_since(*since))).collect()
        };
        let Some(message) = slow_writes(&ages) else { continue };
        if wait == SLOW_WRITE {
            warn!(message, "the API server takes long");
            wait = TELL_AGAIN;
        }
        let patch = if is_known { of_message(&message) } else { of_operation(inputs, active, message) };
        match run.engine.patch_application(run.id(), patch).await {
            Ok(written) => {
                is_known = true;
                run.engine.registry.note(&written);
            }
            Err(error) => debug!(%error, "cannot write what the operation waits for"),
        }
    }
}

/// True if the cluster knows this operation. Then only its message is written: a user may have terminated it meanwhile.
fn is_known(inputs: AppInputs<'_>, active: &ActiveOperation) -> bool {
    let state = inputs.application.status.operation_state.as_ref();
    state.is_some_and(|state| state.started_at == active.record.started_at)
}

fn of_message(message: &str) -> Value {
    json!({"status": {"operationState": {"message": message}}})
}

/// The whole operation, as the first thing that is written of it.
fn of_operation(inputs: AppInputs<'_>, active: &ActiveOperation, message: String) -> Value {
    let mut state = active.to_wire(&inputs.application.spec);
    state.message = message;
    let mut state = state.write();
    // A merge patch keeps what it does not name: the end of the operation before.
    if let Some(fields) = state.as_object_mut() {
        for field in ["finishedAt", "retryCount"] {
            fields.entry(field).or_insert(Value::Null);
        }
    }
    json!({"operation": active.wire.write(), "status": {"operationState": state}})
}
