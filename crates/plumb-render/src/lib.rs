//! Renders sources to manifests: plain directories and Jsonnet, Kustomize and Helm by the real programs, and declared
//! plugin commands.
//!
//! Rendering is a function of its [`RenderRequest`]: the same files, options and tools give the same manifests. The
//! files that a rendering reads are known before a tool runs (the read set). A tool sees only those files, and their
//! hash is part of the cache key. Repositories are untrusted: see [`sandbox`] for what confines the tools.
//!
//! A module uses only modules that are listed above it.

mod hash;
mod cache_files;
mod limits;
mod container_memory;
mod memory_budget;
mod source_type;
mod tools;
mod tool_versions;
mod settings;
mod local_checkout;
mod edited_files;
mod memory_files;
pub mod sandbox;
mod scratch_cleanup;
mod error;
mod failed_renders;
mod disk_use;
mod read_set;
mod export;
mod parse;
mod unrelated_file;
mod cache;
mod helm_env;
mod charts;
mod request;
mod build_env;
mod plan_input;
mod run_context;
mod jsonnet;
mod directory;
mod helm;
mod kustomize;
mod plugin;
mod detect;
mod renderer;

pub use build_env::BuildEnvironment;
pub use charts::answers;
pub use charts::{
    ArchiveError, Chart, ChartDependency, ChartError, ChartRepository, Charts, ClientCertificate, WebAnswer,
    WebRequest, ask_web, missing_dependencies, unpack_upload,
};
pub use edited_files::EditedFiles;
pub use error::RenderError;
pub use jsonnet::{WorkerError, jsonnet_worker};
pub use kustomize::inspect_overlay;
pub use limits::Limits;
pub use local_checkout::LocalFiles;
pub use memory_files::MemoryFiles;
pub use renderer::{Freshness, Looked, Planned, RenderObserver, Rendered, Renderer, RendererConfig};
pub use request::{AppFacts, ClusterFacts, Overrides, RenderRequest};
pub use sandbox::tool_launcher;
pub use settings::{KustomizeVersion, Plugin, PluginDiscovery, RenderSettings};
pub use source_type::SourceType;
pub use tool_versions::outdated_tools;
pub use tools::Tools;
