//! Formats in which other programs read results: SARIF, `JUnit`, annotations of GitHub, cells of Markdown.
//!
//! Names and messages are written by others. Each format escapes them in its own way.

mod github;
mod junit;
mod markdown;
mod sarif;

pub use github::{Annotation, Level, annotation};
pub use junit::{TestCase, junit};
pub(crate) use markdown::{escaped, row};
pub use sarif::{Location, SarifResult, sarif};
