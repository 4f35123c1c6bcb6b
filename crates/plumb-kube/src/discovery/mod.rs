//! Which kinds a cluster serves, in which versions, under which paths; and where their schemas are.

mod catalog;
mod fetch;
mod openapi;
mod wire;

pub(crate) use catalog::percent_encode;
pub use catalog::{Catalog, Resource, ServedKind, ServedVersion, ServerVersion, Verbs};
pub(crate) use fetch::DiscoveryCache;
pub use openapi::SchemaDocument;
