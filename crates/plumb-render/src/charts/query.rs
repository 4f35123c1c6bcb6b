//! What is asked of a repository.

use std::time::Instant;

use plumb_core::version::Constraint;

use super::chart_identity::is_full_version;
use super::repository::ChartRepository;

/// A chart in a version, or in the newest version that satisfies a constraint.
pub(super) struct ChartQuery<'a> {
    pub(super) repository: &'a ChartRepository,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// An answer that the server gave after this moment is new enough.
    pub(super) since: Instant,
    /// Ask the server even for a version that is on disk.
    pub(super) force: bool,
}

impl ChartQuery<'_> {
    /// True for a version that always means the same chart.
    pub(super) fn is_exact(&self) -> bool {
        is_full_version(self.version)
    }

    /// True if neither the name nor the version can be taken for an option or a path. Names as Helm allows them, with
    /// the slashes that registries have; versions and constraints.
    pub(super) fn is_valid(&self) -> bool {
        let Self { name, version, .. } = *self;
        let is_name = !name.is_empty()
            && !name.starts_with(['-', '.', '/'])
            && !name.contains("..")
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'));
        is_name && !version.starts_with('-') && (Constraint::parse(version).is_some() || is_tag(version))
    }
}

/// True for a tag that a registry accepts.
fn is_tag(version: &str) -> bool {
    !version.is_empty()
        && version.len() <= 128
        && !version.starts_with(['.', '-'])
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+'))
}
