//! Parts of semantic versions.

use plumb_core::version::Version;

/// The version in its complete form: `v1.2` is `1.2.0`.
pub(crate) fn complete(version: &Version) -> String {
    let [major, minor, patch] = version.numbers();
    let (prerelease, metadata) = suffixes(version);
    let mut text = format!("{major}.{minor}.{patch}");
    if !prerelease.is_empty() {
        text = format!("{text}-{prerelease}");
    }
    if !metadata.is_empty() {
        text = format!("{text}+{metadata}");
    }
    text
}

/// Pre-release and build metadata.
pub(crate) fn suffixes(version: &Version) -> (&str, &str) {
    let written = version.as_str();
    let (before, metadata) = written.split_once('+').unwrap_or((written, ""));
    (before.split_once('-').map_or("", |(_, prerelease)| prerelease), metadata)
}
