//! Sources to manifests: plain directories and Jsonnet, Kustomize and Helm by the real programs, declared commands.
//!
//! Rendering is a function of its [`RenderRequest`]: the same files, options and tools give the same manifests.
//! What is read is known before anything runs (the [read set](readset)), only that is given to a tool, and its
//! hash is the key of the cache. Repositories are hostile: see [`sandbox`] for what holds them.

mod build_env;
mod cache;
mod charts;
mod detect;
mod directory;
mod error;
mod export;
mod helm;
mod jsonnet;
mod kustomize;
mod leftovers;
mod local;
mod parse;
mod plugin;
mod readset;
mod renderer;
mod request;
pub mod sandbox;

pub use build_env::BuildEnvironment;
pub use charts::{
    ArchiveError, Chart, ChartDependency, ChartError, ChartRepository, Charts, ClientCertificate,
    missing_dependencies,
};
pub use detect::SourceType;
pub use error::RenderError;
pub use jsonnet::{WorkerError, jsonnet_worker};
pub use local::{LocalFiles, MemoryFiles};
pub use renderer::{Freshness, Rendered, Renderer, RendererConfig};
pub use request::{
    AppFacts, ClusterFacts, KustomizeVersion, Limits, Overrides, Plugin, PluginDiscovery, RenderRequest,
    RenderSettings, Tools,
};
