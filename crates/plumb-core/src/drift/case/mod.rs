//! One object while it is judged: the evidence, the comparison, and the questions that come up. The rules and the
//! classes read it; it knows neither of them.

mod definition;
mod field_paths;
mod previous;
mod server;
mod text;
mod writers;

pub(super) use definition::Case;
pub(super) use field_paths::{is_bookkeeping, is_path, is_tracking_mark, is_under, last_field};
pub(super) use server::Prediction;
pub(super) use text::{show, writer};
pub(super) use writers::leaf_places;
