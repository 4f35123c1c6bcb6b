//! One run for one app.

pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod unavailable;
