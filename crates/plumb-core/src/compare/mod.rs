//! What Git asks against what the cluster holds, field by field, with the server's own schema. It says where
//! the two differ and what it forgave on the way; why, and whether it counts, is for `drift` to say.

mod comparison;
mod item_keys;
mod lists;
mod nearest;
mod quantity;
mod twin;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub use comparison::{Addition, Change, Comparison, Difference, Fill, Forgiven, Reason, compare};
pub use quantity::Quantity;
pub(crate) use twin::twin;
pub use value::Spelling;
pub(crate) use value::{is_zero, reprinted};
pub use walk::Aside;
