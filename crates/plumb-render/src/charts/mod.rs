//! Charts from Helm repositories: resolves a version, fetches the archive and unpacks it.
//!
//! plumb reads HTTP repositories itself; Helm pulls from OCI registries. An archive is checked against the digest in the
//! index, unpacked in memory under limits, and stored on disk by version.

mod advice;
mod archive;
mod archive_store;
mod dependencies;
mod download;
mod error;
mod fetch;
mod index;
mod oci;
mod query;
mod repository;

pub use archive::ArchiveError;
pub(crate) use archive::unpack;
pub use dependencies::{ChartDependency, missing_dependencies};
pub use error::ChartError;
pub use fetch::{Chart, Charts};
pub use repository::{ChartRepository, ClientCertificate};
