//! From evidence to a verdict.

mod object;
mod secret;
mod settle;

pub use object::judge;
