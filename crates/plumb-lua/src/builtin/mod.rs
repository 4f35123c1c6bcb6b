//! The actions that Argo CD has for well-known kinds, in Rust: restart, pause, scale, suspend and so on. Their names,
//! display names and effects are those of Argo CD.

mod argo;
mod catalog;
mod edit;
mod flux;
mod kind;
mod numa;
mod operators;
#[cfg(test)]
mod tests;
mod workloads;

pub(crate) use catalog::{act, list};
