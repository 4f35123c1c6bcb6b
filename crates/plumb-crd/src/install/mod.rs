//! The objects of an installation, to be applied in this order.

mod alerts;
mod exposure;
mod image;
mod monitoring;
mod network;
mod objects;
mod options;
mod rbac;
mod settings;
mod shapes;
mod values;

pub use alerts::alert_groups;
pub use image::{ImageReference, NotAnImage};
pub(crate) use objects::labels;
pub use objects::{
    HOME, METRICS_PORT, NAME, STATE_CONFIG_MAP, WEB_PORT, default_project, had_default_project, install,
    namespace, state_config_map,
};
pub use options::{Gateway, Ingress, InstallOptions, PodOptions, Profile, PullPolicy, ServiceMonitor};
pub use shapes::values_schema;
pub use values::{ValuesError, read_values};
