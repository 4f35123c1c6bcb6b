//! Reads a streaming answer line by line.

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use tower::BoxError;

use crate::transport::AnswerBody;

/// An object in etcd has at most a few megabytes; a longer line cannot be an object.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// A buffer that grew beyond this for one large object is freed.
const KEEP_BUFFER: usize = 32 * 1024;

/// Lines of a body that is still being received.
pub(super) struct Lines {
    body: AnswerBody,
    buffer: BytesMut,
    /// How far the buffer was searched for a line break.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(body: AnswerBody) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its line break; `None` when the body ended. A last line without line break is
    /// dropped: it is half an event of a broken connection.
    pub(crate) async fn next(&mut self) -> Result<Option<BytesMut>, BoxError> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + at);
                self.buffer.advance(1);
                self.searched = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BUFFER {
                self.buffer = BytesMut::new();
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err("a watch event is too large".into());
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                None => return Ok(None),
            }
        }
    }
}
