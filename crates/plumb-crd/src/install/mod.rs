//! The objects of an installation, to be applied in this order.

mod image;
mod network;
mod objects;
mod options;
mod rbac;

pub use image::{ImageReference, NotAnImage};
pub(crate) use objects::labels;
pub use objects::{
    HOME, METRICS_PORT, NAME, STATE_CONFIG_MAP, WEB_PORT, default_project, had_default_project, install,
    namespace, state_config_map,
};
pub use options::{InstallOptions, Profile, PullPolicy};
