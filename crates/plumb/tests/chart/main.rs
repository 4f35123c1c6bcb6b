//! The chart and the Kustomize base make the objects of `plumb install`.

mod alerts;
mod compare;
mod files;
mod template;
