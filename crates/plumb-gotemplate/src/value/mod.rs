//! Values with the types that they have in Go, and what creating them costs.

mod data;
mod scope;

pub use data::{Items, ListData, MapData, Text, Value};
pub use scope::Scope;
