//! The settings as one run sees them: Argo CD's `ConfigMaps` and repository Secrets, in the form that the parts of the engine
//! need.

mod limits;
mod read;
mod rendering;
mod repositories;
mod rules;

#[cfg(test)]
mod tests;

pub(crate) use read::{Settings, SettingsSource, StartSettings};
