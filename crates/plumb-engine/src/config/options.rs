//! The options of the engine.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_core::source::AddressPolicy;
use plumb_git::LocalAccess;
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
    /// Where this process runs.
    pub runs_in: RunsIn,
    /// Which repositories on the local disk Applications may name.
    pub local_repositories: LocalAccess,
    /// Most bytes of all Git mirrors on disk.
    pub mirror_space: u64,
    /// Which servers may be connected to for a source.
    pub addresses: AddressPolicy,
    /// How long plumb writes after the last renewal of the lease; `None` is the usual time. Tests raise it.
    pub lease_deadline: Option<Duration>,
}

/// Where this process runs. It decides which addresses of this machine are safe to offer to users who may only write
/// Applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsIn {
    /// In a pod, with its service account: the machine belongs to the cluster's administrators.
    Cluster,
    /// On a user's machine, with a kubeconfig.
    Workstation,
}

impl RunsIn {
    /// Most bytes of all Git mirrors on disk. In a cluster the cache is a volume of 10 GiB, and a mirror is made anew
    /// beside the old one.
    pub fn mirror_space(self, gibibytes: Option<u64>) -> u64 {
        let default = match self {
            Self::Cluster => 6,
            Self::Workstation => 20,
        };
        gibibytes.unwrap_or(default).saturating_mul(1 << 30)
    }

    /// Which servers may be connected to for a source. `api_server` is the API server's address in a pod.
    pub fn addresses(self, api_server: Option<IpAddr>) -> AddressPolicy {
        match self {
            Self::Cluster => AddressPolicy::cluster(api_server),
            Self::Workstation => AddressPolicy::workstation(),
        }
    }

    /// Which repositories on the local disk Applications may name: those below the directories that the user listed
    /// (the word `any` lists all). On a workstation also those below `usual`, except for the root directory: it
    /// contains everything, so a process that happens to start there would offer everything.
    pub fn local_repositories(
        self,
        listed: &[PathBuf],
        usual: impl IntoIterator<Item = PathBuf>,
    ) -> LocalAccess {
        if listed.iter().any(|directory| directory.as_os_str() == "any") {
            return LocalAccess::Anywhere;
        }
        let mut allowed = listed.to_vec();
        if self == Self::Workstation {
            allowed.extend(usual.into_iter().filter(|directory| directory.parent().is_some()));
        }
        if allowed.is_empty() { LocalAccess::Denied } else { LocalAccess::Below(allowed) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_repositories_depend_on_the_place_and_the_flag() {
        let below =
            |directories: &[&str]| LocalAccess::Below(directories.iter().map(PathBuf::from).collect());
        for (place, listed, usual, expected) in [
            (RunsIn::Cluster, vec![], vec!["/tmp", "/home/me/work"], LocalAccess::Denied),
            (RunsIn::Cluster, vec!["/srv/git"], vec!["/tmp"], below(&["/srv/git"])),
            (RunsIn::Cluster, vec!["any"], vec![], LocalAccess::Anywhere),
            (RunsIn::Workstation, vec![], vec!["/tmp", "/home/me/work"], below(&["/tmp", "/home/me/work"])),
            (RunsIn::Workstation, vec!["/srv/git"], vec!["/tmp"], below(&["/srv/git", "/tmp"])),
            (RunsIn::Workstation, vec!["/srv/git", "any"], vec!["/tmp"], LocalAccess::Anywhere),
            (RunsIn::Workstation, vec![], vec!["/tmp", "/"], below(&["/tmp"])),
            (RunsIn::Workstation, vec![], vec!["/", ""], LocalAccess::Denied),
        ] {
            let listed: Vec<PathBuf> = listed.into_iter().map(PathBuf::from).collect();
            let usual: Vec<PathBuf> = usual.into_iter().map(PathBuf::from).collect();
            assert_eq!(
                place.local_repositories(&listed, usual.clone()),
                expected,
                "{place:?} {listed:?} {usual:?}"
            );
        }
    }
}
