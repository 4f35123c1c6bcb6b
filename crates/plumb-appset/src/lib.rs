//! `ApplicationSets` without I/O.
//!
//! [`generate`] turns an `ApplicationSet` and what was gathered for it into Applications: generators make parameter sets,
//! each set renders the template once. Nothing here reads a clock, a file or the network: what a generator needs is asked through [`Facts`], and a fact that
//! was not gathered yet is an error of its own kind, so that the caller can gather it and ask again.
//!
//! The same inputs give the same Applications in the same order. Templates are hostile input: each parameter set has a
//! budget (see `plumb-gotemplate`), and the number of parameter sets is limited.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

mod error;
mod params;
mod glob;
mod field_order;
mod render;
mod selector;
mod facts;
mod follows;
pub mod scm;
mod template;
mod generators;
mod generate;
pub mod reconcile;

pub use error::{GenerationError, Reason};
pub use facts::{ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Repository, Unanswered};
pub use follows::{Follows, Provider, RequestsOf, host};
pub use generate::{Generated, Settings, follows, generate, generate_within, seed_of_uid};
pub use params::{Data, Params};
pub use render::{Budget, Engine, Renderer, Total};
