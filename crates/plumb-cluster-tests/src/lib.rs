//! Every kind that an API server serves, made from the server's own schemas, judged, and changed field by field.
//!
//! - [`server`]: requests as JSON in and JSON out.
//! - [`kinds`]: which kinds there are, with their schemas.
//! - [`skeleton`]: the least that makes an object of a built-in kind valid.
//! - [`generate`] and [`values`]: an object of a kind, as rich as asked.
//! - [`repair`]: from an object that the server refuses to one that it takes, by the server's own complaints.
//! - [`change`]: what somebody else may do to an object.
//! - [`upset`]: everything that may happen to an object, in Git and in the cluster.
//! - [`bench`]: the judgement, with its questions answered by the server.
//!
//! The tests are in `tests/`. They take a sample by default, and everything with `PLUMB_MATRIX=full`.

pub mod bench;
pub mod change;
pub mod generate;
pub mod kinds;
pub mod random;
pub mod repair;
pub mod server;
pub mod skeleton;
pub mod upset;
pub mod values;

/// How much a test run covers is chosen outside.
#[expect(clippy::disallowed_methods, reason = "this is where it is read")]
pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
