//! A reading for kinds without code or rule: conditions, observed generation, words for phases and states,
//! flags, error texts, replicas.
//!
//! All hints in the object are collected; the worst one decides (paused, failing, progressing, healthy). An object
//! without any hint has no health. What is a hint and what it says is in the tables here and in `words`; there is
//! no special case for any kind.

mod conditions;
mod hints;
mod reading;
mod states;
mod words;

pub(super) use conditions::{LooseCondition, conditions};
pub(super) use reading::{is_empty, is_observed, read, whole_number};
