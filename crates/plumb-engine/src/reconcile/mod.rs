//! One run for one app: gather → decide → act.

mod app;
mod gather;
mod idle_check;
mod restore;
mod unavailable;

pub(crate) use app::reconcile;
