//! The options of the engine.

use std::path::PathBuf;
use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_kube::ExecPlugins;

use crate::events::event::EventFilter;

/// The options of the engine, from the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The control-plane namespace: where Applications, projects and settings are.
    pub namespace: String,
    /// The cache directory. Everything below it may be deleted at any time.
    pub cache_dir: PathBuf,
    /// The helm program.
    pub helm: PathBuf,
    /// The kustomize program.
    pub kustomize: PathBuf,
    /// The command that evaluates Jsonnet in a process of its own.
    pub jsonnet: Vec<PathBuf>,
    /// The command that confines and watches the tools that render.
    pub launcher: Vec<PathBuf>,
    /// The holder identity in the lease, unique to this process.
    pub identity: String,
    /// How many apps are reconciled at the same time; `None` uses the settings.
    pub workers: Option<usize>,
    /// How often Git is polled; `None` uses the settings, zero turns polling off.
    pub poll: Option<Duration>,
    /// Which Kubernetes events are written.
    pub events: EventFilter,
    /// Start although another application controller is active in the same namespace.
    pub beside_others: bool,
    /// Where the API server reaches the witness.
    pub witness: WitnessPlace,
    /// Namespaces, besides the control plane's and those of the setting `application.namespaces`, whose
    /// Applications are reconciled: globs, or regular expressions between slashes.
    pub application_namespaces: Vec<Glob>,
    /// Whether the Secret of a cluster may name a program that provides credentials.
    pub exec_plugins: ExecPlugins,
}

/// Where the API server reaches the witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessPlace {
    /// The witness is off.
    Off,
    /// The API server runs on this machine.
    Loopback,
    /// The API server reaches this process under this name or address and port.
    At {
        /// Host name or IP address.
        host: String,
        /// The port, both in the address and of the listener.
        port: u16,
    },
}
