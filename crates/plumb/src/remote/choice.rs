//! Whether a command goes through a server or uses the kubeconfig.

use super::api::Flags;
use crate::config;

/// How a command reaches Applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Through the Kubernetes API, with the kubeconfig.
    Kubeconfig,
    /// Through the API of plumb's or Argo CD's server.
    Server,
}

/// What the command line and the environment say.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is said or not")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// `--core`.
    core: bool,
    /// A flag or variable that names a server, a login or a way to it.
    server: bool,
    /// `--kubeconfig` or `--context`.
    kubeconfig: bool,
    /// The file with logins has a current context with a server.
    login: bool,
}

/// A flag decides; without one, a login does, as with argocd.
fn decide(said: Said) -> Choice {
    match said {
        Said { core: true, .. } => Choice::Kubeconfig,
        Said { server: true, .. } => Choice::Server,
        Said { kubeconfig: true, .. } => Choice::Kubeconfig,
        Said { login: true, .. } => Choice::Server,
        Said { .. } => Choice::Kubeconfig,
    }
}

/// The choice for a command that can use both.
pub(crate) fn choose(flags: &Flags, core: bool, kubeconfig: bool) -> Choice {
    let variable = |name: &str| config::variable(name).is_some();
    let server = flags.server.is_some()
        || flags.auth_token.is_some()
        || flags.context.is_some()
        || flags.port_forward.is_some()
        || variable("ARGOCD_SERVER");
    // A file that cannot be read is no login; commands that need one say what is wrong with it.
    let login = !core && !server && !kubeconfig && flags.file().is_ok_and(|file| file.is_logged_in());
    decide(Said { core, server, kubeconfig, login })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_counts_more_than_a_login() {
        let none = Said::default();
        assert_eq!(decide(none), Choice::Kubeconfig);
        assert_eq!(decide(Said { login: true, ..none }), Choice::Server);
        assert_eq!(decide(Said { login: true, kubeconfig: true, ..none }), Choice::Kubeconfig);
        assert_eq!(decide(Said { server: true, kubeconfig: true, ..none }), Choice::Server);
        assert_eq!(decide(Said { server: true, core: true, ..none }), Choice::Kubeconfig);
    }
}
