//! What moving from Argo CD to plumb changes: decided before anything is changed.

mod facts;
mod parts;
mod plugins;
mod registrations;
mod check;
mod show;

pub use check::check;
pub use facts::{AppVerdict, Finding, Installation, Level, Registration, Report};
pub use show::{data, text};
