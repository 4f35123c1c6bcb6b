//! Which objects an object needs or uses, by name.
//!
//! `lint` finds waves that wait for each other with it, `orphans` finds out who still uses an object.

mod walk;
mod pod;
mod custom;
mod find;
mod graph;

#[cfg(test)]
mod tests;

pub(crate) use find::is_built_in as is_built_in_group;
pub use find::references;
pub use graph::{Users, users};
pub use walk::{Need, Reference};
