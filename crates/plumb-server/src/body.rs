//! The body of an answer: at once, or frame by frame.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct AnswerBody {
    ready: VecDeque<Frame<Bytes>>,
    more: Option<mpsc::Receiver<Frame<Bytes>>>,
}

impl AnswerBody {
    /// These bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let ready = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([Frame::data(bytes)]) };
        Self { ready, more: None }
    }

    pub(crate) fn with_trailers(bytes: Vec<u8>, trailers: HeaderMap) -> Self {
        let mut body = Self::full(bytes);
        body.ready.push_back(Frame::trailers(trailers));
        body
    }

    pub(crate) fn stream(frames: mpsc::Receiver<Frame<Bytes>>) -> Self {
        Self { ready: VecDeque::new(), more: Some(frames) }
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
            Some(frames) => frames.poll_recv(context).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.more.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.more.is_some() || self.ready.iter().any(Frame::is_trailers) {
            return SizeHint::default();
        }
        let length = self.ready.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        SizeHint::with_exact(length)
    }
}
