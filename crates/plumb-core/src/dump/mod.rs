//! The judge without a cluster: live objects from a file, as `kubectl get -o yaml` or `-o json` prints them.
//!
//! No dry run can be asked for and nothing is known of earlier syncs, so more stays unexplained than in a cluster. A
//! schema that is missing is said, not guessed.

mod health;
mod judge;
mod read;

#[cfg(test)]
mod tests;

pub use health::unhealthy;
pub use judge::{DumpedApp, judge_all, likely_namespace, tracking_app};
pub use read::{DumpError, LiveDump, read_dump};
