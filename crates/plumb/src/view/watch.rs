//! `--watch`: a table that is shown again after each change.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, SelectAll};
use plumb_core::object::GroupVersionKind;
use plumb_kube::{ClusterClient, ObjectEvent, ObjectStream, Selection};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::LiveTable;

/// Changes within this time are shown at once.
const TOGETHER: Duration = Duration::from_millis(50);

/// Shows the table of `rows` now and after every change of the watched objects, until the reader closes its end.
pub(crate) async fn follow(
    context: &Context,
    client: &ClusterClient,
    watched: &[(GroupVersionKind, Selection)],
    header: &[&str],
    rows: impl AsyncFn() -> Result<Vec<Vec<String>>, CommandError>,
) -> Result<ExitCode, CommandError> {
    let mut table = LiveTable::new(context.out);
    // An error of the first list ends the command. Later errors are printed, and the watch goes on.
    table.show(header, &rows().await?);
    let mut changes = Changes::of(client, watched)?;
    while !context.out.is_reader_gone() && changes.next(context).await {
        match rows().await {
            Ok(rows) => table.show(header, &rows),
            Err(error) => context.out.note(&error.to_string()),
        }
    }
    Ok(ExitCode::Success)
}

/// Changes of watched objects.
pub(crate) struct Changes(SelectAll<ObjectStream>);

impl Changes {
    /// Watches these objects.
    pub(crate) fn of(
        client: &ClusterClient,
        watched: &[(GroupVersionKind, Selection)],
    ) -> Result<Self, CommandError> {
        let streams: Vec<ObjectStream> = watched
            .iter()
            .map(|(gvk, selection)| {
                let failed = |error| CommandError::api(format!("watch {}", kinds::plural(&gvk.kind)), error);
                client.watch_objects(gvk, selection.clone()).map_err(failed)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self(stream::select_all(streams)))
    }

    /// Waits for the next change, and a moment longer for those that come with it; `false` when there will be none.
    pub(crate) async fn next(&mut self, context: &Context) -> bool {
        if !changed(context, &mut self.0).await {
            return false;
        }
        let more = async { while changed(context, &mut self.0).await {} };
        let _ = tokio::time::timeout(TOGETHER, more).await;
        true
    }
}

/// Waits for the next change; `false` when there will be none.
async fn changed(context: &Context, events: &mut SelectAll<ObjectStream>) -> bool {
    while let Some(event) = events.next().await {
        match event {
            ObjectEvent::Seen(_) | ObjectEvent::Gone { .. } | ObjectEvent::Listed => return true,
            ObjectEvent::Trouble(trouble) => context.out.note(&trouble),
        }
    }
    false
}
