//! Bodies of requests: how large they may be, and how much memory all of them take together.

use std::sync::Arc;
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use plumb_api::{Code, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Largest request of all.
pub(crate) const LARGEST_REQUEST: usize = 32 << 20;
/// Largest request about one object: the API server takes no larger ones.
const LARGEST_OBJECT: usize = 4 << 20;
/// Bodies up to here take no part of the room. A sender without a valid token may send no more: a login is much smaller.
const SMALL: usize = 64 << 10;
/// The calls that bring manifests or files of a whole app.
const OF_WHOLE_APPS: [&str; 3] = [
    "application.ApplicationService/GetManifestsWithFiles",
    "application.ApplicationService/ServerSideDiff",
    "application.ApplicationService/Sync",
];
/// All bodies together, in units.
const ROOM: usize = 128;
const UNIT: usize = 512 << 10;
/// Longest time for a body to arrive, and to wait for room.
const WITHIN: Duration = Duration::from_secs(30);
/// Most values of a JSON body: each takes 32 bytes and more, however short it is written.
const MOST_VALUES: usize = 1_000_000;

/// The largest request of a call.
pub(crate) fn largest(path: &str, is_known: bool) -> usize {
    match (is_known, OF_WHOLE_APPS.contains(&path)) {
        (false, _) => SMALL,
        (true, true) => LARGEST_REQUEST,
        (true, false) => LARGEST_OBJECT,
    }
}

/// A body, and its part of the room for all bodies.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The room for all bodies.
pub(crate) struct Bodies(Arc<Semaphore>);

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM)))
    }
}

impl Bodies {
    /// Reads a body of at most so many bytes. Others wait while the room is used up.
    pub(crate) async fn read(&self, most: usize, body: Incoming) -> Result<Body, Status> {
        let announced = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok());
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large());
        }
        let late = || Status::new(Code::DeadlineExceeded, "the request did not arrive in time");
        let reading = self.read_frames(most, announced.unwrap_or(most), body);
        tokio::time::timeout(WITHIN, reading).await.map_err(|_| late())?
    }

    /// Small bodies take no room, so that nobody can keep the calls of others waiting by sending a large one slowly.
    async fn read_frames(&self, most: usize, expected: usize, mut body: Incoming) -> Result<Body, Status> {
        let (mut bytes, mut room) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| too_large())?.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Err(too_large());
            }
            if room.is_none() && bytes.len() + data.len() > SMALL {
                room = Arc::clone(&self.0).acquire_many_owned(units(expected)).await.ok();
            }
            bytes.extend_from_slice(&data);
        }
        // What the body did not need is free for others while the call runs.
        let excess = units(expected).saturating_sub(units(bytes.len()));
        if let Some(room) = room.as_mut() {
            drop(room.split(usize::try_from(excess).unwrap_or_default()));
        }
        Ok(Body { bytes, room })
    }
}

fn units(size: usize) -> u32 {
    u32::try_from(size.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn too_large() -> Status {
    Status::new(Code::ResourceExhausted, "the request is too large or broken")
}

/// Refuses JSON that would take much more memory than its text. Commas and brackets inside of texts do not count.
pub(crate) fn check_weight(json: &[u8]) -> Result<(), Status> {
    let (mut n_values, mut in_text, mut is_escaped) = (0usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => n_values += 1,
            _ => {}
        }
    }
    if n_values > MOST_VALUES {
        return Err(Status::new(Code::ResourceExhausted, "the request has too many values"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_sends_no_more_than_a_login() {
        let session = "session.SessionService/Create";
        assert_eq!(largest(session, false), SMALL);
        assert_eq!(largest(OF_WHOLE_APPS[0], false), SMALL);
        assert_eq!(largest(OF_WHOLE_APPS[0], true), LARGEST_REQUEST);
        assert_eq!(largest("application.ApplicationService/Create", true), LARGEST_OBJECT);
        const { assert!(LARGEST_REQUEST / UNIT < ROOM, "one request never takes all of the room") };
    }

    #[test]
    fn values_count_and_texts_do_not() {
        let many = |item: &str| format!("[{}]", vec![item; MOST_VALUES / 2 + 1].join(",")).into_bytes();
        assert!(check_weight(&many("{}")).is_err());
        assert!(check_weight(&many("1")).is_ok());
        let text = format!("{{\"a\": \"{}\\\"\"}}", ",[{".repeat(MOST_VALUES));
        assert!(check_weight(text.as_bytes()).is_ok());
        assert!(check_weight(b"").is_ok());
    }
}
