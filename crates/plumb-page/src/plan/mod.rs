//! What a verb would do, before it is done.

mod verb;
mod draft;
mod sync;
mod pause;
mod deletion;
mod other;
mod make;

pub use make::{Plan, plan};
pub use verb::{PlanRequest, Verb};
