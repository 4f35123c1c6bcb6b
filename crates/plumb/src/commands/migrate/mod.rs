//! `plumb migrate`: the way from Argo CD.

mod check;
mod verbs;

pub(crate) use verbs::{Args, run};
