//! Streams end when the right to them does.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use plumb_api::Status;
use tokio::sync::{mpsc, watch};

use crate::app_feed::Item;
use crate::body::stopped;

/// How often the right to a stream is checked.
pub(crate) const CHECK_STREAMS: Duration = Duration::from_secs(10);

/// What a stream sends.
pub(crate) type Message = Result<Arc<Item>, Status>;

/// Passes the messages on for as long as `still` permits them and the server does not stop; then the stream ends with the
/// reason.
pub(crate) fn guarded<F>(
    mut messages: mpsc::Receiver<Message>,
    every: Duration,
    mut stopping: watch::Receiver<bool>,
    still: impl Fn() -> F + Send + 'static,
) -> mpsc::Receiver<Message>
where
    F: Future<Output = Result<(), Status>> + Send,
{
    let (sender, passed) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut check = tokio::time::interval(every);
        // The first tick is now, and the right was just checked.
        check.tick().await;
        loop {
            let message = tokio::select! {
                biased;
                () = sender.closed() => return,
                () = stopped(&mut stopping) => {
                    let _ = sender.send(Err(Status::unavailable("the server stops; try again"))).await;
                    return;
                }
                _ = check.tick() => match still().await {
                    Ok(()) => continue,
                    Err(status) => {
                        let _ = sender.send(Err(status)).await;
                        return;
                    }
                },
                message = messages.recv() => message,
            };
            let Some(message) = message else { return };
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    passed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use plumb_api::Code;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_stream_ends_when_the_right_is_gone() {
        let is_permitted = Arc::new(AtomicBool::new(true));
        let (sender, messages) = mpsc::channel(1);
        let still = {
            let is_permitted = Arc::clone(&is_permitted);
            move || {
                let is_permitted = is_permitted.load(Ordering::Relaxed);
                async move { if is_permitted { Ok(()) } else { Err(Status::denied()) } }
            }
        };
        let (_stop, stopping) = watch::channel(false);
        let mut passed = guarded(messages, Duration::from_millis(5), stopping, still);
        sender.send(Ok(Arc::new(Item::new(json!({"a": 1}))))).await.unwrap();
        assert_eq!(passed.recv().await.unwrap().unwrap().value, json!({"a": 1}));
        is_permitted.store(false, Ordering::Relaxed);
        let end = passed.recv().await.unwrap().err().map(|status| status.code);
        assert_eq!(end, Some(Code::PermissionDenied));
        assert!(passed.recv().await.is_none());
        sender.closed().await;
    }
    #[tokio::test]
    async fn a_stream_ends_when_the_server_stops() {
        let (_sender, messages) = mpsc::channel(1);
        let (stop, stopping) = watch::channel(false);
        let mut passed = guarded(messages, CHECK_STREAMS, stopping, || async { Ok(()) });
        stop.send(true).unwrap();
        let end = passed.recv().await.unwrap().err().map(|status| status.code);
        assert_eq!(end, Some(Code::Unavailable));
        assert!(passed.recv().await.is_none());
    }
}
