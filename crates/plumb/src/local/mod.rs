//! Judging on this machine: directories of working copies, rendered here, against a dump of live objects.

mod app;
mod args;
mod checkouts;
mod dump;
mod renderer;
mod settings;

pub(crate) use app::{LocalApp, overrides};
pub(crate) use args::OfflineArgs;
pub(crate) use checkouts::{Checkouts, own_urls, top};
pub(crate) use dump::openapi;
pub(crate) use renderer::{LocalRenderer, LocalSource, RenderFacts, desired_set};
pub(crate) use settings::settings_of;
