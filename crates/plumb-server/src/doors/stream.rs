//! Streams of messages as frames of a body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use plumb_api::Status;
use tokio::sync::mpsc;

use crate::app_feed::Item;
use crate::body::AnswerBody;

/// How many frames wait in the connection.
const WAITING: usize = 8;
/// A client that takes none of them for so long is cut off.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a stream sends.
pub(super) enum Part {
    Message(Arc<Item>),
    /// The end, with the error that caused it.
    End(Option<Status>),
    /// Nothing happened for a while.
    Idle,
}

/// Sends the messages, each turned into a frame by `form`; `None` sends nothing. `idle` is how often a sign of life is
/// due.
pub(super) fn body(
    mut messages: mpsc::Receiver<Result<Arc<Item>, Status>>,
    idle: Option<Duration>,
    mut form: impl FnMut(Part) -> Option<Frame<Bytes>> + Send + 'static,
) -> AnswerBody {
    let (sender, frames) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        loop {
            let pause = async {
                match idle {
                    Some(idle) => tokio::time::sleep(idle).await,
                    None => std::future::pending().await,
                }
            };
            let part = tokio::select! {
                message = messages.recv() => match message {
                    Some(Ok(item)) => Part::Message(item),
                    Some(Err(status)) => Part::End(Some(status)),
                    None => Part::End(None),
                },
                () = pause => Part::Idle,
                () = sender.closed() => return,
            };
            let is_end = matches!(part, Part::End(_));
            if let Some(frame) = form(part)
                && sender.send_timeout(frame, PATIENCE).await.is_err()
            {
                return;
            }
            if is_end {
                return;
            }
        }
    });
    AnswerBody::stream(frames)
}
