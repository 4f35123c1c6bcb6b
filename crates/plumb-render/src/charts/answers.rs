//! Readers of what chart servers answer, as plain functions, for fuzzing.

use plumb_core::source::{RepoPath, SourceFiles as _};

use super::archive;
use super::index::ChartVersions;
use super::registry_wire as wire;
use crate::limits::Limits;

/// The number of versions of a chart in an index; `None` if it is refused.
pub fn index_versions(index: &[u8], chart: &str) -> Option<usize> {
    let versions = ChartVersions::read(|| index, chart).ok()?;
    let _ = (versions.find("*"), versions.find("1.0.0"), versions.hint());
    Some(versions.len())
}

/// The sha256 of the archive that a manifest names.
pub fn manifest_digest(manifest: &[u8]) -> Option<String> {
    wire::chart_layer(manifest).ok().map(|layer| layer.sha256)
}

/// The number of tags in one page.
pub fn n_tags(page: &[u8]) -> Option<usize> {
    wire::tags(page).ok().map(|tags| tags.len())
}

/// The token in the answer of a token server.
pub fn token(answer: &[u8]) -> Option<String> {
    wire::token(answer).ok()
}

/// Reads a text as each header that registries send.
pub fn headers(text: &str) {
    let _ = (wire::challenge(text), wire::next_page(text));
}

/// The number of files in the first directory of an archive; `None` if it is refused.
pub fn archive_files(archive: &[u8]) -> Option<usize> {
    // Small, so that a bomb shows.
    let limits = Limits { export_bytes: 1 << 20, export_files: 1000, ..Limits::default() };
    let files = archive::unpack(archive, &limits).ok()?;
    files.list(&RepoPath::root()).ok().map(|entries| entries.len())
}
