//! Differences that a person declared to be none, compiled once and used by comparing, healing and applying
//! alike.

mod rules;

pub use rules::{IgnoreProblem, IgnoreRules, Ignored};
