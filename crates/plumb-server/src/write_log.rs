//! What is noted about every write: a line in the log, and an event.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::text::without_logins;
use tracing::info;

use crate::audit::{Circumstances, Written};
use crate::call::{Answer, Call};
use crate::handlers::Handler;

/// Writes the line about a call when the call has ended: only then is it known whether it was allowed. A call that its
/// client leaves has a line, too.
pub(crate) struct WriteLog<'h> {
    handler: &'h Handler,
    call: Arc<Call>,
    outcome: Option<Outcome>,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    /// False if the caller lacks the right.
    is_allowed: bool,
    /// False if the call failed, for whatever reason.
    is_done: bool,
}

impl Outcome {
    fn of(error: Option<&Status>) -> Self {
        let is_refused =
            |error: &Status| matches!(error.code, Code::PermissionDenied | Code::Unauthenticated);
        Self { is_allowed: !error.is_some_and(is_refused), is_done: error.is_none() }
    }
}

impl<'h> WriteLog<'h> {
    /// The log of a call; nothing is noted about one that writes nothing.
    pub(crate) fn of(handler: &'h Handler, call: &Arc<Call>) -> Option<Self> {
        handler.writes.then(|| Self { handler, call: Arc::clone(call), outcome: None })
    }

    /// Notes how the call ended.
    pub(crate) fn ended(mut self, result: &Result<Answer, Status>) {
        self.outcome = Some(Outcome::of(result.as_ref().err()));
        match result {
            Ok(answer) => record(self.handler, &self.call, Some(answer)),
            // One about an Application that the caller may not see would tell that it exists.
            Err(status) if status.code == Code::PermissionDenied && self.call.app.is_some() => {
                record(self.handler, &self.call, None);
            }
            Err(_) => {}
        }
    }
}

/// One line for every write: who, what, from where, allowed or not, done or not. Bodies are never logged.
impl Drop for WriteLog<'_> {
    fn drop(&mut self) {
        let call = &self.call;
        let object = object_of(call);
        let (user, method, forwarded) = (call.username(), self.handler.path, &call.forwarded);
        if let Some(Outcome { is_allowed, is_done }) = self.outcome {
            info!(user, method, object, from = %call.peer, forwarded, allowed = is_allowed, done = is_done,
                  "write through the API");
        } else {
            info!(user, method, object, from = %call.peer, forwarded, "write through the API: the client left");
        }
    }
}

/// What a write is about.
fn object_of(call: &Call) -> String {
    let name = |path: &str| call.request.pointer(path).and_then(serde_json::Value::as_str);
    let paths = [
        "/name",
        "/application/metadata/name",
        "/project/metadata/name",
        "/project",
        "/repo/repo",
        "/cluster/server",
        "/id/value",
    ];
    // An address of a repository may have a login in it.
    let object = without_logins(paths.into_iter().find_map(name).unwrap_or_default());
    object.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// One event for every write that was carried out, or that the caller may not do to an Application that it sees.
fn record(handler: &Handler, call: &Call, answer: Option<&Answer>) {
    let noted = call.written.lock().take();
    let written = match answer {
        Some(Answer::One(value)) if value.pointer("/metadata/uid").is_some() => Some(value),
        _ => noted.as_ref().or_else(|| call.app.as_ref().map(|app| &app.value)),
    };
    let written = Written {
        method: handler.path,
        request: &call.request,
        object: written,
        user: call.username(),
        from: Some(call.peer),
        namespace: call.namespace(),
    };
    let circumstances = Circumstances { is_refused: answer.is_none(), forwarded: &call.forwarded };
    call.shared.audit.record_with(&written, circumstances);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_refused_is_not_allowed_and_one_that_fails_is_not_done() {
        let of = |code: Code| Outcome::of(Some(&Status::new(code, "x")));
        assert_eq!(Outcome::of(None), Outcome { is_allowed: true, is_done: true });
        assert_eq!(of(Code::PermissionDenied), Outcome { is_allowed: false, is_done: false });
        assert_eq!(of(Code::Unauthenticated), Outcome { is_allowed: false, is_done: false });
        assert_eq!(of(Code::Aborted), Outcome { is_allowed: true, is_done: false });
    }
}
