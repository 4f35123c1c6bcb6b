//! `pub(crate)` is only for items that another top-level module of the crate uses. Inside a folder,
//! `pub(super)` or `pub(in crate::folder)` says how far an item is meant to be known.

mod declarations;
mod rule;

pub(super) use rule::check;
