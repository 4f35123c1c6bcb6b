//! Kustomize overlays, rendered by `kustomize build`.

mod edit;
mod inspect;
mod keys;
mod origins;
mod plan;
mod run;

pub(crate) use plan::{KUSTOMIZATION_FILES, KustomizePlan, plan};
