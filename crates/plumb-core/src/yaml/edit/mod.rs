//! Changes of a YAML file that leave the rest of its text alone: comments, order, quotes, anchors, indentation, line
//! breaks and the other documents.
//!
//! The way of an edit: `operation` says what the document shall be, `step` finds the first place where the text does
//! not say so and changes that place alone, the text is read again, and so on until nothing differs. `apply` then
//! proves the result: the whole file is read again with the reader of this crate, and every document must be exactly
//! what it was, but for the change. What cannot be proved is refused with the reason.

mod apply;
mod flow;
mod guard;
mod layout;
mod operation;
mod props;
mod refusal;
mod scalar_text;
mod slot;
mod splice;
mod step;
mod value_text;

#[cfg(test)]
mod tests;

pub use apply::{Edited, edit_document};
pub use operation::{Operation, PathProblem};
pub use refusal::EditRefusal;
