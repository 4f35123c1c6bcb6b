//! Limits on one rendering.

use std::time::Duration;

/// Limits on one rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for one run of a tool.
    pub time: Duration,
    /// Most memory of a tool and of the processes that it starts, in bytes. The memory of the container may allow less.
    pub memory: u64,
    /// Most processes of a tool at the same time.
    pub processes: usize,
    /// Most bytes that a tool may print.
    pub output: usize,
    /// Most objects in one source.
    pub objects: usize,
    /// Most bytes of manifests in a plain directory, without Jsonnet.
    pub directory_bytes: usize,
    /// Most bytes that are written to disk for one rendering, from all its sources and archives.
    pub export_bytes: u64,
    /// Most files that are written to disk for one rendering.
    pub export_files: usize,
    /// Most bytes on disk for all renderings that run at the same time.
    pub all_export_bytes: u64,
    /// Limits on reading YAML.
    pub yaml: plumb_core::yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(90),
            memory: 4 << 30,
            processes: 512,
            output: 64 << 20,
            objects: 20_000,
            directory_bytes: 10 << 20,
            export_bytes: 512 << 20,
            export_files: 50_000,
            all_export_bytes: 2 << 30,
            yaml: plumb_core::yaml::Limits { max_bytes: 64 << 20, ..plumb_core::yaml::Limits::default() },
        }
    }
}

/// Most bytes of memory for reading one file with options, such as a kustomization.
const OPTIONS_MEMORY: usize = 16 << 20;

impl Limits {
    /// The same with at most this much memory, in bytes.
    #[must_use]
    pub(crate) fn with_memory(&self, memory: u64) -> Self {
        let memory = memory.min(self.memory);
        let mut limits = Self { memory, ..self.clone() };
        limits.yaml.max_memory = limits.yaml.max_memory.min(usize::try_from(memory).unwrap_or(usize::MAX));
        limits
    }

    /// The same for reading files with options before a rendering starts.
    #[must_use]
    pub(crate) fn for_options(&self) -> Self {
        let mut limits = self.clone();
        limits.yaml.max_memory = limits.yaml.max_memory.min(OPTIONS_MEMORY);
        limits
    }
}
