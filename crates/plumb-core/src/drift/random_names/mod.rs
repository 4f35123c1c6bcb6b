//! Names that a chart generates at random in each render: keys of maps and list items, and names of objects.

mod keys;
mod objects;

pub(super) use keys::{RandomKeysOf, asked_key_of, held_key_of};
pub use objects::renamed;
