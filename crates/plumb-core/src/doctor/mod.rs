//! What to look at first: all that is known about all apps, in four blocks, worst first.
//!
//! `diagnose` sorts, groups and filters; `text`, `markdown`, `sarif`, `junit` and `data` print. Nothing here reads a
//! clock or a cluster: the facts come from reports and Applications.

mod data;
mod diagnose;
mod facts;
mod group;
mod junit;
mod markdown;
mod sarif;
mod text;

#[cfg(test)]
mod tests;

pub use data::data;
pub use diagnose::{Diagnosis, Filter, diagnose};
pub use facts::{AppFacts, PauseFact, UnhealthyFact};
pub use group::{Group, Illness, Place};
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::text;
