//! From findings to changes in Git: which change ends a difference, and in which document.
//!
//! `propose` decides by class and goal, `edit_file` writes the change with the editor of [`yaml`](crate::yaml), which
//! proves that nothing else changes. What has no safe change is an instruction for a person. Nothing here reads or
//! writes a file.

mod drop;
mod dry_run_comparison;
mod file;
mod git_path;
mod goal;
mod hook_policy;
mod ignore_entry;
mod json_patch;
mod locate;
mod long_edit;
mod missing;
mod named_items;
mod only_here;
mod overlay;
mod pins;
mod proof;
mod proposal;
mod propose;
mod seen;
mod subject;
mod unstable;
mod values;

#[cfg(test)]
mod tests;

pub use drop::drop_document;
pub use dry_run_comparison::DryRunComparison;
pub use file::{FileEdit, FixRefusal, edit_file};
pub use goal::FixGoal;
pub use ignore_entry::IgnoreEntry;
pub use locate::{DocumentPlace, locate};
pub use overlay::{names_for_patches, overlay_patch};
pub use proof::{ProofFailure, prove, prove_dropped, prove_intended, same_places, still_there};
pub use proposal::{Action, ObjectChange, Proposal};
pub use propose::propose;
pub use seen::is_shown_by_argo_cd;
pub use subject::{Keeper, LastSync, Subject};
pub use unstable::Unstable;
pub use values::{ValuesCandidate, literal_lines, value_candidates};
