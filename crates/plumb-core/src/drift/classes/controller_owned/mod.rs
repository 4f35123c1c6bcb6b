//! A controller sets the field, and is meant to.

mod control_plane;
mod explain;
mod guarded;
mod harmless;

pub(in crate::drift) use control_plane::is_added_by_control_plane;
pub(in crate::drift) use explain::{
    addition, aggregated, autoscaled, difference, fix, scaled_addition, tainted,
};
pub(in crate::drift) use harmless::{is_theirs_to_keep, may_add_inside};
