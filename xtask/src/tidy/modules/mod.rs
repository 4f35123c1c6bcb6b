//! The top-level modules of a crate are listed from the bottom up in its root: each uses only those above it.
//! So a reader learns them in order, and no two modules need each other.

mod cycles;
mod graph;
mod order;
mod uses;

pub(super) use cycles::check_cycles;
pub(super) use order::check_order;
