//! From a template and parameters to an Application.

mod application;
mod overlay;
mod patch;

pub(crate) use application::render;
pub(crate) use overlay::merged;
