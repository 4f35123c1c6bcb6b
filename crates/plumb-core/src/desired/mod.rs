//! What Git asks for: rendered manifests turned into a set of objects with identity, scope and intent.

mod build;
mod complete;
mod denied;
mod filter;
mod options;
mod problem;
mod scope;
mod set;

#[cfg(test)]
mod tests;

pub use build::{DesiredContext, RenderedManifest, build};
pub use complete::{Complete, Incomplete};
pub use denied::DeniedObjects;
pub use filter::{KindFilter, KindRule};
pub(crate) use options::SYNC_OPTIONS;
pub use options::{DeletePolicy, HookPhase, ObjectOptions, Propagation, PruneOption, Wave};
pub use problem::DesiredProblem;
pub use scope::{Scope, Scopes};
pub use set::{DesiredHook, DesiredObject, DesiredSet, Origin};
