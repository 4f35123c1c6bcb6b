//! The flags that make or change an Application's spec, and what each does to it.
//!
//! They edit the spec as the cluster holds it, so that a field that this program does not know survives.

mod hydrator;
mod policy;
mod source;
mod source_choice;

pub(crate) use policy::PolicyFlags;
pub(crate) use source::{SourceFlags, image_name};
pub(crate) use source_choice::SourceChoice;
