//! Generators: from facts to parameter sets.

mod asks;
mod clusters;
mod combine;
mod decision;
mod entry;
mod followed;
mod git;
mod list;
mod plugin;
mod provider;
mod values;

pub(crate) use asks::asks_servers;
pub(crate) use entry::{Context, transform};
pub(crate) use followed::{Place, followed};
