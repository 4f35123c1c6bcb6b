//! The loop: gather → decide → act, at most one run per app.

pub mod queue;
