//! Helm charts, rendered by `helm template`.

mod escape;
mod now;
mod origins;
mod plan;
mod run;
mod values;

pub(crate) use escape::plain_version;
pub(crate) use now::set_clock;
pub(crate) use plan::{HelmPlan, plan};
