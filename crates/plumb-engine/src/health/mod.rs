//! How the objects of an app are, since when, and if they are not well, why.
//!
//! The judgements are `plumb_core::health`'s; here is gathered what they need: the answers of the users' scripts
//! ([`custom`]), the Secrets and Services that an object depends on ([`surroundings`]), the objects below it
//! ([`family`]), events and logs ([`testimony`]), and what was noted earlier ([`memory`]).

mod checkup;
mod custom;
mod family;
mod memory;
mod surroundings;
mod testimony;

pub(crate) use checkup::{Checked, Checkup, Ill};
pub(crate) use custom::ask;
pub(crate) use family::trouble;
pub(crate) use memory::HealthMemory;
pub(crate) use surroundings::Surroundings;
pub(crate) use testimony::Testimonies;
