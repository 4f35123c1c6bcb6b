//! Tests of the YAML reader.

mod reader;
mod recorded;
