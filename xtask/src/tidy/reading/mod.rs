//! The repository as the rules read it: the files that Git tracks, parsed Rust sources, and the modules of each
//! crate.

mod attributes;
mod crates;
mod tree;

pub(super) use attributes::{is_test_function, is_test_only, of_impl_item, of_item};
pub(super) use crates::{Crate, Module, crates};
pub(super) use tree::{RustFile, Tree};
