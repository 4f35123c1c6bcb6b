//! Renders one source at its turn.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use plumb_core::app::AppId;
use plumb_render::{Freshness, Looked, Planned, RenderError, RenderObserver, RenderRequest, Rendered};
use tracing::Span;

use super::error::SourceError;
use super::gather::Sources;
use super::render_slots::RenderSlot;
use crate::apps::large_apps::{LargeApps, Turn};

/// One rendering.
struct Progress {
    app: AppId,
    large_apps: LargeApps,
    slot: RefCell<Option<RenderSlot>>,
    turn: Cell<Option<Turn>>,
}

impl RenderObserver for Progress {
    fn begins(&self) {
        if let Some(slot) = &*self.slot.borrow() {
            slot.begin();
        }
    }

    fn before_reading(&self, n_bytes: usize) -> bool {
        // An app that waits for its turn needs no slot: its tool has run.
        let taken = self.large_apps.wait_for_turn(&self.app, n_bytes, || drop(self.slot.take()));
        let is_small = taken.is_none();
        drop(self.turn.replace(taken));
        is_small
    }
}

/// How far a rendering got without a tool.
enum Step {
    Done(Rendered, Option<Turn>),
    RunTool(Box<Planned>, Box<RenderRequest>),
}

/// Renders on a thread that may block. Lines that it logs there name the app, as those of the caller do.
pub(super) async fn blocking<T: Send + 'static>(
    render: impl FnOnce() -> Result<T, RenderError> + Send + 'static,
) -> Result<T, SourceError> {
    let span = Span::current();
    let output = tokio::task::spawn_blocking(move || span.in_scope(render)).await;
    Ok(output.map_err(|_| SourceError::Aborted { what: "rendering" })??)
}

impl Sources {
    /// Renders one source on a thread of its own. If the result is large, it is read when the app's turn comes, which is
    /// returned with it. What is in the cache, and plain files, wait for no tool.
    pub(super) async fn render(
        &self,
        app: &AppId,
        request: RenderRequest,
        freshness: Freshness,
    ) -> Result<(Rendered, Option<Turn>), SourceError> {
        let tenant = request.tenant();
        let progress = |slot| Progress {
            app: app.clone(),
            large_apps: self.large_apps.clone(),
            slot: RefCell::new(Some(slot)),
            turn: Cell::new(None),
        };
        let (renderer, observer) =
            (Arc::clone(&self.renderer), progress(self.read_slots.take(&tenant).await));
        let look = move || match renderer.look(&request, freshness, &observer)? {
            Looked::Found(found) => Ok(Step::Done(found, observer.turn.take())),
            Looked::NotFound(planned) if planned.runs_tool() => Ok(Step::RunTool(planned, Box::new(request))),
            Looked::NotFound(planned) => {
                let read = renderer.run_planned(planned, &request, &observer)?;
                Ok(Step::Done(read, observer.turn.take()))
            }
        };
        let (planned, request) = match blocking(look).await? {
            Step::Done(output, turn) => return Ok((output, turn)),
            Step::RunTool(planned, request) => (planned, request),
        };
        let (renderer, observer) =
            (Arc::clone(&self.renderer), progress(self.tool_slots.take(&tenant).await));
        let run = move || {
            let output = renderer.run_planned(planned, &request, &observer)?;
            Ok((output, observer.turn.take()))
        };
        blocking(run).await
    }
}
