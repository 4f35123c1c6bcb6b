//! Bodies of requests: how large they may be, and how much memory all of them take together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use plumb_api::{Code, Status};
use plumb_core::peers::{Peer, PeerShare, PeerShares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Largest request of all.
pub(crate) const LARGEST_REQUEST: usize = 32 << 20;
/// Largest request about one object: the API server takes no larger ones.
const LARGEST_OBJECT: usize = 4 << 20;
/// Bodies up to here take no part of the room for large ones. A sender without a valid token may send no more: a login is
/// much smaller.
const SMALL: usize = 64 << 10;
/// All small bodies of senders without a valid token that are arriving or in use, and those of one address.
const OF_STRANGERS: usize = 16 << 20;
const OF_STRANGER: usize = 1 << 20;
/// The same for users. All users may come through one proxy.
const OF_USERS: usize = 64 << 20;
const OF_USER: usize = 48 << 20;
/// What a request takes at least, and the steps in which it takes more. A body may arrive byte by byte.
const STEP: usize = 4 << 10;
/// The calls that bring manifests or files of a whole app.
const OF_WHOLE_APPS: [&str; 3] = [
    "application.ApplicationService/GetManifestsWithFiles",
    "application.ApplicationService/ServerSideDiff",
    "application.ApplicationService/Sync",
];
/// All large bodies together, in units.
const ROOM: usize = 128;
const UNIT: usize = 512 << 10;
/// Longest time for a body to arrive, and to wait for room.
const WITHIN: Duration = Duration::from_secs(30);
/// The same for a sender without a valid token.
const WITHIN_OF_STRANGERS: Duration = Duration::from_secs(10);
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

/// Who sends a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) peer: Peer,
    /// True if the token of the request is valid.
    pub(crate) is_known: bool,
    /// The bytes of the headers, which stay in memory for as long as the body takes.
    pub(crate) head: usize,
}

/// The bytes of headers.
pub(crate) fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// A body, and its part of the room for all bodies.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) room: Room,
}

/// A part of the room for all bodies, which is free again when this is dropped.
#[derive(Default)]
pub(crate) struct Room {
    large: Option<OwnedSemaphorePermit>,
    small: Vec<PeerShare>,
}

/// The room for all bodies.
pub(crate) struct Bodies {
    large: Arc<Semaphore>,
    strangers: PeerShares,
    users: PeerShares,
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            large: Arc::new(Semaphore::new(ROOM)),
            strangers: PeerShares::new(OF_STRANGERS, OF_STRANGER),
            users: PeerShares::new(OF_USERS, OF_USER),
        }
    }
}

impl Bodies {
    /// Reads a body of at most so many bytes. Others wait while the room for large bodies is used up.
    pub(crate) async fn read<B>(&self, most: usize, sender: Sender, body: B) -> Result<Body, Status>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let announced = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok());
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large());
        }
        let late = || Status::new(Code::DeadlineExceeded, "the request did not arrive in time");
        let reading = self.read_frames(most, announced.unwrap_or(most), sender, body);
        let within = if sender.is_known { WITHIN } else { WITHIN_OF_STRANGERS };
        tokio::time::timeout(within, reading).await.map_err(|_| late())?
    }

    /// The bytes of small bodies are counted as they arrive. They take no room of large ones, so that nobody can keep the
    /// calls of others waiting by sending a large one slowly.
    async fn read_frames<B>(
        &self,
        most: usize,
        expected: usize,
        sender: Sender,
        mut body: B,
    ) -> Result<Body, Status>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let (mut bytes, mut room) = (Vec::new(), Room::default());
        self.cover(&mut room, sender, sender.head.max(1))?;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| too_large())?.into_data() else { continue };
            let size = bytes.len() + data.len();
            if size > most {
                return Err(too_large());
            }
            if size <= SMALL {
                self.cover(&mut room, sender, sender.head + size)?;
            } else if room.large.is_none() {
                room.large = Arc::clone(&self.large).acquire_many_owned(units(expected)).await.ok();
            }
            bytes.extend_from_slice(&data);
        }
        // What the body did not need is free for others while the call runs.
        let excess = units(expected).saturating_sub(units(bytes.len()));
        if let Some(large) = room.large.as_mut() {
            drop(large.split(usize::try_from(excess).unwrap_or_default()));
        }
        Ok(Body { bytes, room })
    }

    /// Takes more of the room until it covers so many bytes.
    fn cover(&self, room: &mut Room, sender: Sender, bytes: usize) -> Result<(), Status> {
        let shares = if sender.is_known { &self.users } else { &self.strangers };
        while room.small.len() * STEP < bytes {
            let share = shares.take(sender.peer, STEP).map_err(|_| {
                Status::unavailable("too many requests arrive at the same time; try again in a second")
            })?;
            room.small.push(share);
        }
        Ok(())
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
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use http_body::Frame;

    use super::*;

    /// A body that sends these frames and then nothing more, like a client that waits.
    struct Slow(Vec<usize>);

    impl http_body::Body for Slow {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            match self.0.pop() {
                Some(size) => Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; size]))))),
                None => Poll::Pending,
            }
        }
    }

    fn stranger(address: &str) -> Sender {
        Sender { peer: Peer::of(address.parse().unwrap()), is_known: false, head: 200 }
    }

    type Reading<'b> = Pin<Box<dyn Future<Output = Result<Body, Status>> + 'b>>;

    /// How many of these requests are refused, while the others wait for the rest of their bodies.
    fn waiting<'b>(
        bodies: &'b Bodies,
        senders: impl Iterator<Item = Sender>,
        frames: &[usize],
    ) -> (Vec<Reading<'b>>, usize) {
        let (mut open, mut n_refused) = (Vec::new(), 0);
        for sender in senders {
            let slow = Slow(frames.to_vec());
            let mut reading: Reading<'b> = Box::pin(bodies.read_frames(SMALL, SMALL, sender, slow));
            match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => open.push(reading),
                Poll::Ready(Err(status)) => {
                    assert_eq!(status.code, Code::Unavailable);
                    n_refused += 1;
                }
                Poll::Ready(Ok(_)) => panic!("the body has not ended"),
            }
        }
        (open, n_refused)
    }

    #[test]
    fn the_bodies_of_strangers_take_a_bounded_room_however_they_arrive() {
        for frames in [vec![60 << 10], vec![1; 60 << 10], vec![]] {
            let bodies = Bodies::default();
            let of_one = std::iter::repeat_n(stranger("192.0.2.1"), 500);
            let (open, n_refused) = waiting(&bodies, of_one, &frames);
            let each = (200 + frames.iter().sum::<usize>()).next_multiple_of(STEP);
            assert!(open.len() * each <= OF_STRANGER, "{} × {each}", open.len());
            assert!(n_refused >= 500 - OF_STRANGER / each);
            let (login, _) = waiting(&bodies, std::iter::once(stranger("192.0.2.2")), &[100]);
            assert_eq!(login.len(), 1, "another address logs in");
            drop(open);
            let (again, _) = waiting(&bodies, std::iter::once(stranger("192.0.2.1")), &[100]);
            assert_eq!(again.len(), 1, "what ended is free again");
        }
    }

    #[test]
    fn many_addresses_take_no_more_than_all_strangers_may_and_nothing_of_users() {
        let bodies = Bodies::default();
        let many = (0..600u32).map(|n| stranger(&format!("10.0.{}.{}", n / 256, n % 256)));
        let (open, n_refused) = waiting(&bodies, many, &[60 << 10]);
        assert!(open.len() * (60 << 10) <= OF_STRANGERS, "{}", open.len());
        assert!(n_refused > 300, "{n_refused}");
        let user = Sender { is_known: true, ..stranger("10.0.0.1") };
        assert_eq!(waiting(&bodies, std::iter::once(user), &[60 << 10]).0.len(), 1);
    }

    #[test]
    fn headers_count_too() {
        let bodies = Bodies::default();
        let heavy = Sender { head: 60 << 10, ..stranger("192.0.2.1") };
        let (open, _) = waiting(&bodies, std::iter::repeat_n(heavy, 500), &[]);
        assert!(open.len() <= OF_STRANGER / (60 << 10), "{}", open.len());
    }

    #[test]
    fn a_thousand_calls_of_one_user_are_read() {
        let bodies = Bodies::default();
        let user = Sender { is_known: true, ..stranger("192.0.2.1") };
        let (open, n_refused) = waiting(&bodies, std::iter::repeat_n(user, 1000), &[500]);
        assert_eq!((open.len(), n_refused), (1000, 0));
    }

    #[test]
    fn a_stranger_sends_no_more_than_a_login() {
        let bodies = Bodies::default();
        let reading = pin!(bodies.read_frames(
            largest("session.SessionService/Create", false),
            SMALL,
            stranger("192.0.2.1"),
            Slow(vec![SMALL, 1]),
        ));
        let read = reading.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(read, Poll::Ready(Err(status)) if status.code == Code::ResourceExhausted));
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
