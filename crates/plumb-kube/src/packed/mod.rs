//! Values in memory, compressed with zstd: objects of a kind against a sample of the kind, and any value as JSON.

mod contexts;
mod object;
mod json;

pub use json::PackedJson;
pub(crate) use object::{PackedObject, Samples, pack};
