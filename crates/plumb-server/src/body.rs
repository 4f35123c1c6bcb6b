//! The body of an answer: at once, or frame by frame.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use plumb_core::peers::PeerShare;
use tokio::sync::{mpsc, watch};

/// Answers up to here are given to the connection at once.
const AT_ONCE: usize = 4 << 10;
/// The pieces of larger ones.
const PIECE: usize = 64 << 10;
/// How long an answer may take, and the bytes that a client must read in each further second. A client that takes longer is
/// cut off: the answer is in memory until it is sent.
const WITHIN: Duration = Duration::from_mins(1);
const PER_SECOND: usize = 64 << 10;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct AnswerBody {
    ready: VecDeque<Frame<Bytes>>,
    more: Option<mpsc::Receiver<Frame<Bytes>>>,
    /// The length of what comes frame by frame, if it is known. An answer that is cut off is then shorter than it said,
    /// which a client can tell.
    length: Option<u64>,
}

impl AnswerBody {
    /// These bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let ready = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([Frame::data(bytes)]) };
        Self { ready, ..Self::default() }
    }

    pub(crate) fn with_trailers(bytes: Vec<u8>, trailers: HeaderMap) -> Self {
        let mut body = Self::full(bytes);
        body.ready.push_back(Frame::trailers(trailers));
        body
    }

    pub(crate) fn stream(frames: mpsc::Receiver<Frame<Bytes>>) -> Self {
        Self { more: Some(frames), ..Self::default() }
    }

    /// The same body, which ends when the server stops if it comes frame by frame.
    pub(crate) fn until(self, mut stopping: watch::Receiver<bool>) -> Self {
        let Some(mut more) = self.more else { return self };
        let (sender, frames) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    () = sender.closed() => return,
                    () = stopped(&mut stopping) => return,
                    frame = more.recv() => frame,
                };
                let Some(frame) = frame else { return };
                if sender.send(frame).await.is_err() {
                    return;
                }
            }
        });
        Self { more: Some(frames), ..self }
    }

    /// The bytes, if all of them are there and nothing follows them.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        match (&self.more, self.ready.len()) {
            (None, 1) => self.ready.front()?.data_ref().cloned(),
            _ => None,
        }
    }

    /// The bytes that wait in memory to be sent.
    pub(crate) fn size(&self) -> usize {
        self.ready.iter().filter_map(Frame::data_ref).map(Bytes::len).sum()
    }

    /// Sends a large answer in pieces, and gives its share of the room for all answers back when it was sent.
    pub(crate) fn paced(self, share: PeerShare) -> Self {
        let seconds = u64::try_from(self.size() / PER_SECOND).unwrap_or_default();
        self.paced_within(share, WITHIN + Duration::from_secs(seconds))
    }

    fn paced_within(self, share: PeerShare, within: Duration) -> Self {
        let size = self.size();
        if size <= AT_ONCE || self.more.is_some() {
            return self;
        }
        let has_trailers = self.ready.iter().any(Frame::is_trailers);
        let (sender, frames) = mpsc::channel(1);
        tokio::spawn(async move {
            let _share = share;
            let sending = async {
                for frame in self.ready.into_iter().flat_map(pieces) {
                    if sender.send(frame).await.is_err() {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(within, sending).await;
        });
        let length = (!has_trailers).then(|| u64::try_from(size).unwrap_or_default());
        Self { more: Some(frames), length, ..Self::default() }
    }
}

/// Resolves when the server stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stops| *stops).await.is_err() {
        // Nothing is left that could stop.
        std::future::pending::<()>().await;
    }
}

/// A frame in pieces that a connection takes one after another. Nothing is copied.
fn pieces(frame: Frame<Bytes>) -> Vec<Frame<Bytes>> {
    match frame.into_data() {
        Ok(data) => {
            let starts = (0..data.len()).step_by(PIECE);
            starts.map(|at| Frame::data(data.slice(at..data.len().min(at + PIECE)))).collect()
        }
        Err(other) => vec![other],
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(frame) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.more {
            None => Poll::Ready(None),
            Some(frames) => {
                let frame = std::task::ready!(frames.poll_recv(context));
                let sent = frame.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
                self.length = self.length.map(|length| length.saturating_sub(sent));
                Poll::Ready(frame.map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.more.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if let Some(length) = self.length {
            return SizeHint::with_exact(length);
        }
        if self.more.is_some() || self.ready.iter().any(Frame::is_trailers) {
            return SizeHint::default();
        }
        let length = self.ready.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        SizeHint::with_exact(length)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use plumb_core::peers::{Peer, PeerShares};

    use super::*;

    fn shares() -> PeerShares {
        PeerShares::new(1 << 20, 1 << 20)
    }

    fn share(shares: &PeerShares, bytes: usize) -> PeerShare {
        shares.take(Peer::of("192.0.2.1".parse().unwrap()), bytes).unwrap()
    }

    fn is_free(shares: &PeerShares) -> bool {
        shares.take(Peer::of("192.0.2.2".parse().unwrap()), 1 << 20).is_ok()
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_dropped_after_a_while() {
        let shares = shares();
        let body = AnswerBody::full(vec![b'x'; 512 << 10]);
        let body = body.paced_within(share(&shares, 512 << 10), Duration::from_millis(100));
        assert_eq!(body.size_hint().exact(), Some(512 << 10));
        tokio::task::yield_now().await;
        assert!(!is_free(&shares), "the client may still read it");
        while !is_free(&shares) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let read = body.collect().await.unwrap().to_bytes();
        assert!(read.len() < 512 << 10, "the client sees that it is incomplete: {}", read.len());
    }

    #[tokio::test]
    async fn an_answer_that_is_read_is_whole_and_gives_its_room_back() {
        let shares = shares();
        let sent: Vec<u8> = (0..300_000u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        let body = AnswerBody::with_trailers(sent.clone(), trailers).paced(share(&shares, sent.len()));
        let read = body.collect().await.unwrap();
        assert!(read.trailers().is_some());
        assert_eq!(read.to_bytes(), sent);
        while !is_free(&shares) {
            tokio::task::yield_now().await;
        }
    }
}
