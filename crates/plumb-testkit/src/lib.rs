//! Helpers for tests. Nothing of this crate ships.
//!
//! - [`cluster`]: real control planes on 127.0.0.1, built from this repository's own sources.
//! - [`git`]: Git repositories in a temporary directory, made by the real program.
//! - [`SmallDisk`]: a disk that can be full or read-only.
//! - [`skipped`]: how a test says that this machine cannot run it.
//! - [`objects`]: small makers of Kubernetes objects, as JSON values.
//! - `TestNamespace`: a fresh namespace in the one cluster of a test run, with everything a test
//!   does to objects in it, and waiting on facts instead of time.
//! - `line`: a line to an API server that can be cut, below TLS.
//! - `ssh`, `https`: servers that repositories and charts are fetched from, with keys and certificates.
//! - `SealedSecretsController`: the real one, behind a Service of a namespace.
//! - `browser`: a real Chromium, and what a user does in it.
//! - `proxy`: a proxy before the API server that delays, refuses, breaks, and counts.
//!
//! Its errors are those of `anyhow`: they are shown to the author of a test, and no code decides by them.

mod skip;
mod disk;
pub mod git;
pub mod objects;
pub mod cluster;

#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "servers")]
pub mod https;
#[cfg(feature = "servers")]
pub mod ssh;

#[cfg(feature = "client")]
pub mod audit;
#[cfg(feature = "client")]
pub mod line;
#[cfg(feature = "client")]
pub mod wait;
#[cfg(feature = "client")]
mod record;
#[cfg(feature = "client")]
mod shared;
#[cfg(feature = "client")]
mod private;
#[cfg(feature = "client")]
mod namespace;
#[cfg(feature = "client")]
pub mod proxy;
#[cfg(all(feature = "client", feature = "servers"))]
mod sealed_secrets;

pub use disk::SmallDisk;
pub use skip::skipped;

#[cfg(feature = "client")]
pub use namespace::TestNamespace;
#[cfg(feature = "client")]
pub use private::PrivateCluster;
#[cfg(feature = "client")]
pub use record::Recording;
#[cfg(all(feature = "client", feature = "servers"))]
pub use sealed_secrets::SealedSecretsController;
#[cfg(feature = "client")]
pub use shared::{SharedCluster, another_cluster, client_for, programs, shared_cluster};
