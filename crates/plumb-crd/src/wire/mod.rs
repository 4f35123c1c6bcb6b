//! One description per wire type: how it is read, how it is written, and how the API server validates it.
//!
//! The structs of this crate are declared with the `wire!` macro, which implements the functions of [`Wire`] from one
//! list of fields. So the reader, the writer and the schema of the custom resource definition cannot disagree.

mod declare;
mod error;
mod read;
mod scalars;
mod schema;

pub(crate) use declare::{is_required, wire};
pub use error::{WireError, describe};
pub use read::Wire;
pub(crate) use read::{read_field, read_map};
pub use scalars::{IntOrString, Raw, RawMap, format_time, whole_seconds};
pub(crate) use schema::{described, object_schema, restrict};
