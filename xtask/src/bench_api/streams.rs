//! Many open streams, each on a connection of its own.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::client::Client;

/// The server lets a caller make a hundred calls per second, after a first four hundred.
const PAUSE: Duration = Duration::from_millis(11);
/// How often the streams are looked at: often enough for the figure, and seldom enough to leave the server its core.
const SWEEP: Duration = Duration::from_millis(1);
/// How long a change may take to arrive before the measurement is given up.
const ARRIVES_WITHIN: Duration = Duration::from_secs(20);

/// Open streams.
pub(super) struct Streams(Vec<Open>);

struct Open {
    stream: TcpStream,
    /// The end of what was read: a text may arrive in two parts.
    tail: Vec<u8>,
    seen: Option<Instant>,
}

impl Streams {
    /// Opens streams that begin with the next change.
    pub(super) fn open(client: &Client, path: &str, count: usize) -> Result<Self> {
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let mut stream = TcpStream::connect(client.address).context("cannot connect to plumb")?;
            let head = client.head("GET", path, "text/event-stream", 0);
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            streams.push(Open { stream, tail: Vec::new(), seen: None });
            std::thread::sleep(PAUSE);
        }
        for open in &mut streams {
            let mut head = [0; 15];
            open.stream.set_read_timeout(Some(ARRIVES_WITHIN))?;
            open.stream.read_exact(&mut head).context("a stream has no answer")?;
            ensure!(head.starts_with(b"HTTP/1.1 200"), "a stream: {}", String::from_utf8_lossy(&head));
            open.stream.set_nonblocking(true)?;
        }
        Ok(Self(streams))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads all streams until each has shown the text. Returns when the last one did.
    pub(super) fn until_all_show(&mut self, text: &str) -> Result<Instant> {
        for open in &mut self.0 {
            open.seen = None;
            open.tail.clear();
        }
        let until = Instant::now() + ARRIVES_WITHIN;
        while self.0.iter().any(|open| open.seen.is_none()) {
            let missing = self.0.iter().filter(|open| open.seen.is_none()).count();
            ensure!(Instant::now() < until, "{missing} streams do not show the change");
            std::thread::sleep(SWEEP);
            for open in self.0.iter_mut().filter(|open| open.seen.is_none()) {
                open.read(text)?;
            }
        }
        self.0.iter().filter_map(|open| open.seen).max().context("there are no streams")
    }
}

impl Open {
    fn read(&mut self, text: &str) -> Result<()> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => anyhow::bail!("the server ended a stream"),
                Ok(read) => self.tail.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("cannot read a stream"),
            }
            if self.tail.windows(text.len()).any(|bytes| bytes == text.as_bytes()) {
                self.seen = Some(Instant::now());
                return Ok(());
            }
            let keep = self.tail.len().saturating_sub(text.len());
            self.tail.drain(..keep);
        }
    }
}
