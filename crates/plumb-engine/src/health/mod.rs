//! The health of an app's objects: the status, since when, and the cause if an object is unhealthy.
//!
//! `plumb_core::health` judges. This folder gathers what it needs: the answers of users' Lua scripts ([`lua`]), the
//! Secrets and Services that an object depends on ([`dependencies`]), the objects that it owns ([`children`]),
//! events and logs ([`events_and_logs`]), edits of Secrets that controllers make ([`derived`]), and what earlier runs
//! saw ([`history`]).

pub(crate) mod check;
pub(crate) mod children;
pub(crate) mod dependencies;
mod derived;
pub(crate) mod events_and_logs;
pub(crate) mod history;
pub(crate) mod lua;
