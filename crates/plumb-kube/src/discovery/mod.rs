//! Reads from the API server which kinds it serves, and where their schemas are.

mod wire;
mod openapi;
mod fetch;

pub use openapi::SchemaDocument;
