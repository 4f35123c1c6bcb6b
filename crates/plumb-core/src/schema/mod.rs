//! The cluster's own schemas, compiled for walking: which fields a kind has, how its lists merge, what the
//! server fills in. They come from the API server's `OpenAPI` v3 documents, never from a copy of our own, so a
//! server newer than plumb works too. A kind without schema is walked as the server itself would walk it:
//! maps field by field, lists as a whole.

mod wire;
mod compile;
mod from_files;
mod known_defaults;
mod known_types;
mod node;
mod sensitive;
mod set;

#[cfg(test)]
mod tests;

pub use known_defaults::{ServerFill, is_allocated_field};
pub use known_types::KnownType;
pub use node::{Field, ListType, Scalar, Schema, Shape};
pub use sensitive::SensitiveField;
pub use set::{KindSchema, SchemaSet};
