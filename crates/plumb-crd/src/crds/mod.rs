//! The custom resource definitions, generated from the wire types.

mod definitions;
#[cfg(test)]
mod tests;

pub use definitions::crds;
