//! How many requests to one cluster may be in flight: as many as the API server works on at once, plus a
//! short queue.
//!
//! There is no fixed number of requests per second. An API server at capacity does not answer faster if it
//! gets more requests: they queue inside it, and the requests of other clients queue behind them. So the
//! limit follows the response time, compared with the fastest answer to a request of the same sort. It grows
//! while all slots are in use and answers are fast, and shrinks when they are slow. It halves on 429 and on
//! timeouts. Requests that take long because of one kind in one namespace have slots of their own ([`places`]): they
//! neither use up the slots of others nor make the server look slow.

mod pace;
mod places;
mod limiter;

pub(crate) use limiter::{Limiter, Outcome, Slot};
pub(crate) use pace::Sort;
pub(crate) use places::{Place, SLOW_AFTER};
