//! Differences that users chose to ignore, compiled once and used by comparing, healing and applying
//! alike.

mod effort;
mod jq;
mod limits;
mod places;
mod rules;

#[cfg(test)]
mod tests;

pub(crate) use places::PlaceSet;
pub use rules::{IgnoreProblem, IgnoreRules, Ignored};
