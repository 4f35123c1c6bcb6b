//! How many requests to one cluster may be in flight: as many as it works on at once, and few that only wait there.
//!
//! There is no number of requests a second. A server that has all its hands full answers nothing sooner for being
//! asked more; what it gets on top queues up inside it, and everybody else's requests queue behind ours. So the limit
//! follows the time that answers take, measured against the fastest answer to a request of the same sort: it grows
//! while all slots are in use and answers come as fast as ever, and shrinks to what keeps the server busy when they
//! come late. It halves when the server says 429 or gives no answer.

mod pace;
mod limiter;

pub(crate) use limiter::{Limiter, Outcome};
pub(crate) use pace::Sort;
