//! A reading for any kind that nobody taught us: conditions, observed generation, words for phases and states,
//! flags, error texts, replicas.
//!
//! Every hint that the object gives is noted; the worst one decides (paused, failing, under way, well). An object
//! without any hint has no health. What is a hint and what it says is in the tables here and in `words`; there is
//! no special case for any kind.

mod conditions;
mod hints;
mod reading;
mod states;
mod words;

pub(super) use conditions::{LooseCondition, conditions};
pub(super) use reading::{is_empty, is_observed, read, whole_number};
