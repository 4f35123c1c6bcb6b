//! The three dialects of path patterns that `ApplicationSets` use.

mod item;
mod braces;
mod pathspec;
mod pattern;

pub(crate) use pattern::{Dialect, Glob};
