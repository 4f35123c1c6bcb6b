//! What moving from Argo CD to plumb changes: decided before anything is changed.

mod check;
mod facts;
mod show;

pub use check::check;
pub use facts::{AppVerdict, Finding, Installation, Level, Report};
pub use show::{data, text};
