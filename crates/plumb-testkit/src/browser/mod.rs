//! A real Chromium without a window, over the protocol of its developer tools.

mod axe;
mod chromium;
mod page_state;
mod tab;

pub use axe::axe_core;
pub use chromium::{Chromium, find};
pub use tab::Tab;
