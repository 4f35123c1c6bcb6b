//! What to look at first: all that is known about all apps, in four blocks, worst first.
//!
//! `diagnose` sorts, groups and filters; `text`, `markdown`, `sarif`, `junit` and `data` print. Nothing here reads a
//! clock or a cluster: the facts come from reports and Applications.

mod began;
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

pub use began::{Change, ChangeKind, began, changed_fields, edits, last_before};
pub use data::data;
pub use diagnose::{Diagnosis, Filter, diagnose};
pub use facts::{AppFacts, PauseFact, StatusOf, UnhealthyFact};
pub use group::{Group, Illness, Place, Unjudged};
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::text;
