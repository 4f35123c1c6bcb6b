//! Limits on one rendering.

use std::time::Duration;

/// Limits on one rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for one run of a tool.
    pub time: Duration,
    /// Address space of a tool, in bytes.
    pub memory: u64,
    /// Most bytes that a tool may print.
    pub output: usize,
    /// Most objects in one source.
    pub objects: usize,
    /// Most bytes of manifests in a plain directory, without Jsonnet.
    pub directory_bytes: usize,
    /// Most bytes that are written to disk for a tool.
    pub export_bytes: u64,
    /// Most files that are written to disk for a tool.
    pub export_files: usize,
    /// Limits on reading YAML.
    pub yaml: plumb_core::yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(90),
            memory: 4 << 30,
            output: 64 << 20,
            objects: 20_000,
            directory_bytes: 10 << 20,
            export_bytes: 512 << 20,
            export_files: 50_000,
            yaml: plumb_core::yaml::Limits { max_bytes: 64 << 20, ..plumb_core::yaml::Limits::default() },
        }
    }
}
