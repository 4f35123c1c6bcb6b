//! The chart and the Kustomize base make the objects of `plumb install`; the schemas check them.

mod alerts;
mod compare;
mod files;
mod schemas;
mod template;
