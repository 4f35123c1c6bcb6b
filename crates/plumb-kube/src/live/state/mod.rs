//! All objects with their indices. Every change goes through [`State::put`] and [`State::remove`], which keep
//! the indices consistent and return the change. There is no I/O here.

mod data;
mod kinds;
mod objects;
mod relations;
#[cfg(test)]
mod tests;

pub(super) use data::{Id, Seen, State};
