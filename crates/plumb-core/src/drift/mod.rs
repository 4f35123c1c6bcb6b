//! What a difference means.

mod class;
mod finding;

pub use class::DriftClass;
pub use finding::{Finding, Fix, FixKind};
