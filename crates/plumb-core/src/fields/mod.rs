//! Who owns which field: `metadata.managedFields`, read where it lies. Nothing is built up front; a question
//! about one place walks the `FieldsV1` tree to that place. Only long lists get an index, when they are first asked for.

mod exemptions;
mod list_index;
mod managers;
mod of_git;
mod other_writers;
mod owners;
mod take_over;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use exemptions::IGNORE_HEALTH;
pub use exemptions::{Exemption, Exemptions};
pub use managers::{is_control_plane, is_controller_by_name, is_person};
pub use of_git::{annotation_of_git, annotation_written_at, object_pause};
pub use other_writers::has_other_writers;
pub use owners::{Entry, Operation, Owners};
pub use take_over::{TakeOver, take_over};
