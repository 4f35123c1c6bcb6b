//! Differences that users chose to ignore, compiled once and used by comparing, healing and applying
//! alike.

mod jq;
mod rules;

#[cfg(test)]
mod tests;

pub use rules::{IgnoreProblem, IgnoreRules, Ignored};
