//! A real Chromium without a window, over the protocol of its developer tools.

mod package;
mod axe;
mod typescript;
mod chromium;
mod page_state;
mod tab;

pub use axe::axe_core;
pub use chromium::{Chromium, find};
pub use tab::Tab;
pub use typescript::typescript;
