//! How the engine is started.

use std::path::PathBuf;
use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_kube::ExecPlugins;

use crate::events::event::EventFilter;

/// How the engine works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The control-plane namespace: where Applications, projects and settings are.
    pub namespace: String,
    /// Everything below it is a cache and may be deleted at any time.
    pub cache_dir: PathBuf,
    /// The helm program.
    pub helm: PathBuf,
    /// The kustomize program.
    pub kustomize: PathBuf,
    /// The command that evaluates Jsonnet in a process of its own.
    pub jsonnet: Vec<PathBuf>,
    /// Who we are in the lease; unique to this process.
    pub identity: String,
    /// How many apps are looked at at the same time, if not as many as the settings say.
    pub workers: Option<usize>,
    /// How often Git is asked where no webhook tells, if not as often as the settings say; zero: never.
    pub poll: Option<Duration>,
    /// Which Kubernetes events are written.
    pub events: EventFilter,
    /// Start although another application controller is at work in the same namespace.
    pub beside_others: bool,
    /// Where the API server reaches the witness.
    pub witness: WitnessPlace,
    /// Namespaces, besides the control plane's and those of the setting `application.namespaces`, whose
    /// Applications are looked at: globs, or regular expressions between slashes.
    pub application_namespaces: Vec<Glob>,
    /// May the Secret of a cluster name a program that gives credentials?
    pub exec_plugins: ExecPlugins,
}

/// Where the API server reaches the witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessPlace {
    /// There is none.
    Off,
    /// The API server runs on this machine.
    Loopback,
    /// The API server reaches this process under this name or address and port.
    At {
        /// Name or address.
        host: String,
        /// Port, here and there.
        port: u16,
    },
}
