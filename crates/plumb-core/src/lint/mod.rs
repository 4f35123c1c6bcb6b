//! What can be said about a repository before it is merged, from the files alone.
//!
//! One file per rule. `lint` runs all of them, `with_lines` finds the lines of the fields, `text`, `data`, `sarif`,
//! `junit`, `github` and `markdown` print. Without a cluster, less can be proved: a rule says nothing where it would have
//! to guess.

mod rule;
mod finding;
mod app;
mod built_in;
mod defaults;
mod phantoms;
mod spelling;
mod rejected;
mod unstable;
mod shared;
mod secrets;
mod hooks;
mod waves;
mod claims;
mod problems;
mod merge;
mod run;
mod lines;
mod formats;
mod text;

#[cfg(test)]
mod tests;

pub use app::LintApp;
pub use finding::LintFinding;
pub use formats::{data, github, junit, markdown, sarif};
pub use lines::with_lines;
pub use merge::of_merge;
pub use rule::{LintRule, Severity};
pub use run::lint;
pub use text::text;
