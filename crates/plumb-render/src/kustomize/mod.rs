//! Kustomize overlays, rendered by `kustomize build`.

mod edit;
mod inspect;
mod keys;
mod origins;
mod plan;
mod run;

pub use inspect::inspect_overlay;
pub(crate) use plan::{KUSTOMIZATION_FILES, KustomizePlan, plan};
