//! The namespaces whose Applications plumb reconciles.

use plumb_core::glob::Glob;

use super::options::Options;
use super::settings::Settings;

/// The namespaces whose Applications plumb reconciles, determined when plumb starts.
#[derive(Debug)]
pub(crate) struct AppNamespaces {
    control_plane: String,
    others: Vec<Glob>,
}

impl AppNamespaces {
    pub(crate) fn new(options: &Options, settings: &Settings) -> Self {
        let others = options.application_namespaces.iter().chain(&settings.application_namespaces);
        Self { control_plane: options.namespace.clone(), others: others.cloned().collect() }
    }

    /// The only namespace to watch; `None` means all namespaces.
    pub(crate) fn to_watch(&self) -> Option<String> {
        self.others.is_empty().then(|| self.control_plane.clone())
    }

    /// True if plumb reconciles the Applications of this namespace.
    pub(crate) fn permit(&self, namespace: &str) -> bool {
        namespace == self.control_plane || self.others.iter().any(|pattern| pattern.matches(namespace))
    }
}
