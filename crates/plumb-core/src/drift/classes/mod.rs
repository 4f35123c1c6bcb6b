//! One file per class: when a difference belongs to it, and what ends it.

pub(super) mod admission_mutated;
pub(super) mod behind;
pub(super) mod blocked;
pub(super) mod controller_owned;
pub(super) mod equivalent_value;
pub(super) mod hook_residue;
pub(super) mod live_edit;
pub(super) mod orphan;
pub(super) mod phantom_default;
pub(super) mod rejected_field;
pub(super) mod schema_default;
pub(super) mod shared_resource;
pub(super) mod stale_ownership;
pub(super) mod tug_of_war;
pub(super) mod unadopted;
pub(super) mod unclaimed_addition;
pub(super) mod unexplained;
pub(super) mod unstable_render;

pub(crate) use phantom_default::{is_dropped_by_argo_cd, is_same_as_absent};
