//! Carries out the steps of a sync, one function per verb.

pub(crate) mod apply;
pub(crate) mod step;
