//! Charts from Helm repositories: resolves a version, fetches the archive and unpacks it.
//!
//! An archive is checked against the digest that the index or the registry gives, and against the name and version that
//! were asked for. It is unpacked in memory under limits, and stored on disk under what was asked for.

mod advice;
pub mod answers;
mod archive;
mod archive_store;
mod chart_identity;
mod dependencies;
mod error;
mod fetch;
mod http;
mod web;
mod index;
mod index_json;
mod index_store;
mod oci;
mod query;
mod registry_wire;
mod repository;

pub(crate) use archive::unpack;
pub use archive::{ArchiveError, unpack_upload};
pub use dependencies::{ChartDependency, missing_dependencies};
pub use error::ChartError;
pub use fetch::{Chart, Charts};
pub use repository::{ChartRepository, ClientCertificate};
pub use web::{WebAnswer, WebRequest, ask_web};
