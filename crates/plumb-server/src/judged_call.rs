//! A call under its permission: what is checked before its handler runs, after it, and while its stream is open.

use std::sync::Arc;

use http::HeaderMap;
use plumb_api::{Code, Status};
use tokio::sync::{mpsc, watch};
use tracing::error;

use crate::call::{Answer, Call};
use crate::handlers::{Access, Handler};
use crate::stream_guard::{CHECK_STREAMS, Message, guarded};

/// Runs a handler. One that asked for no permission has no answer.
pub(crate) async fn run(handler: &Handler, call: &Arc<Call>) -> Result<Answer, Status> {
    let answer = (handler.run)(Arc::clone(call)).await?;
    if handler.access.was_asked(&call.asked.lock()) {
        return Ok(answer);
    }
    error!(
        method = handler.path,
        "a defect of plumb: a call asked for no permission; its answer is withheld"
    );
    Err(Status::new(Code::Internal, "the permission was not checked"))
}

/// A stream that ends when the right to it does: it lives longer than the right may.
pub(crate) fn while_permitted(
    call: Arc<Call>,
    headers: HeaderMap,
    stopping: watch::Receiver<bool>,
    messages: mpsc::Receiver<Message>,
) -> Answer {
    let still = move || {
        let (call, headers) = (Arc::clone(&call), headers.clone());
        async move { call.is_still_permitted(&headers).await }
    };
    Answer::Stream(guarded(messages, CHECK_STREAMS, stopping, still))
}

/// What the table says that the caller needs.
pub(crate) fn check(handler: &Handler, call: &mut Call) -> Result<(), Status> {
    match &handler.access {
        Access::Open | Access::Login | Access::Shows | Access::Asks(_) => Ok(()),
        Access::App(action) => {
            // Its request has another name for the namespace of the Application.
            if handler.path == "application.ApplicationService/ListLinks"
                && let Some(namespace) = call.request.get("namespace").cloned()
            {
                call.request["appNamespace"] = namespace;
            }
            let action = action(&call.request);
            call.app = Some(call.find_app(&action)?);
            Ok(())
        }
        Access::AppThen(action) => {
            let app = call.find_app("get")?;
            let object = app.object(call.namespace());
            // A refusal is noted with the Application.
            call.app = Some(app);
            call.require("applications", action, &object)
        }
        Access::On(resource, action, object) => call.require(resource, action, &object(&call.request)),
    }
}
