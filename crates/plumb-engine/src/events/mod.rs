//! Kubernetes events about Applications.

pub(crate) mod event;
pub(crate) mod writer;
