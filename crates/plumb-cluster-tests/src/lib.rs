//! Tests plumb's verdicts on objects of every kind that an API server serves, generated from the server's own schemas
//! and changed field by field.
//!
//! - [`server`]: requests as JSON in and JSON out.
//! - [`kinds`]: the kinds of the server, with their schemas.
//! - [`skeleton`]: the fields that a valid object of a built-in kind needs.
//! - [`generate`] and [`values`]: generate an object of a kind with as many fields as requested.
//! - [`repair`]: changes an object that the server refuses until the server accepts it, guided by the server's errors.
//! - [`change`]: changes that another writer may make to an object.
//! - [`upset`]: changes that may happen to an object in Git and in the cluster.
//! - [`bench`]: runs the judge and answers its questions with the server.
//!
//! The tests are in `tests/`. They take a sample by default, and everything with `PLUMB_MATRIX=full`. A module uses only
//! modules that are listed above it.

mod settings;
pub mod random;
pub mod values;
pub mod kind;
pub mod server;
pub mod kinds;
pub mod skeleton;
pub mod generate;
pub mod change;
pub mod repair;
pub mod upset;
pub mod bench;

pub use settings::setting;
