//! From evidence to a verdict.

mod object;
mod secret;
mod settle;
mod size;

pub use object::judge;
pub use size::is_large;
