//! The only module that reads environment variables. Everything else gets values.

use std::path::PathBuf;

use plumb_kube::Connection;

use crate::error::CommandError;

/// Which cluster, and where in it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// Path of the kubeconfig [default: $KUBECONFIG, then ~/.kube/config, then the pod's service account].
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, global = true, visible_alias = "kube-context", value_name = "NAME")]
    context: Option<String>,
    /// Namespace of Applications, projects and settings [default: argocd].
    ///
    /// For commands on single objects (`app logs`, `app actions`, `app get-resource`, `cluster add` …) it is the
    /// namespace of the objects, as in argocd. Use --control-namespace for the control plane there.
    #[arg(long, short = 'n', global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Namespace of Applications, projects and settings for commands where --namespace is the namespace of objects
    /// [default: `$PLUMB_NAMESPACE`].
    #[arg(long, global = true, hide_short_help = true, value_name = "NAMESPACE")]
    control_namespace: Option<String>,
    /// Use the kubeconfig, also where `plumb login` has noted a server.
    #[arg(long, global = true, hide_short_help = true)]
    core: bool,
}

impl ConnectionArgs {
    /// The control-plane namespace, if one was chosen.
    pub(crate) fn control_namespace(&self) -> Option<String> {
        self.control_namespace.clone().or_else(|| variable("PLUMB_NAMESPACE"))
    }

    /// True with `--core`.
    pub(crate) fn is_core(&self) -> bool {
        self.core
    }

    /// True if the command line chooses a cluster of a kubeconfig.
    pub(crate) fn chooses_cluster(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// These options as words, for another process of plumb that works on the same cluster.
    pub(crate) fn words(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let control = self.namespace.clone().or_else(|| self.control_namespace());
        [("--kubeconfig", kubeconfig), ("--context", self.context.clone()), ("--control-namespace", control)]
            .into_iter()
            .filter_map(|(flag, value)| Some(format!("{flag}={}", value?)))
            .collect()
    }

    /// The kubeconfig that the user named, whether it exists or not.
    fn kubeconfig(&self) -> Option<PathBuf> {
        self.kubeconfig.clone().or_else(|| variable("KUBECONFIG").map(PathBuf::from))
    }

    /// True without a kubeconfig: the pod's service account is used.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.path().is_none()
    }

    fn path(&self) -> Option<PathBuf> {
        self.kubeconfig().or_else(|| Some(home()?.join(".kube/config")).filter(|path| path.exists()))
    }

    /// The kubeconfig, for commands that work on its contexts.
    pub(crate) fn kubeconfig_path(&self) -> Result<PathBuf, CommandError> {
        let path = self.kubeconfig().or_else(|| Some(home()?.join(".kube/config")));
        path.ok_or_else(|| {
            CommandError::new("no kubeconfig found").hint("set KUBECONFIG, or pass --kubeconfig")
        })
    }

    /// Address and credentials of the cluster.
    pub(crate) async fn connection(&self) -> Result<Connection, CommandError> {
        let Some(path) = self.path() else {
            return Connection::in_cluster().map_err(|error| {
                CommandError::because("find a cluster", error)
                    .hint("no kubeconfig found: set KUBECONFIG, pass --kubeconfig, or run inside a cluster")
            });
        };
        Connection::from_kubeconfig(&path, self.context.as_deref()).await.map_err(|error| {
            CommandError::because(format!("read kubeconfig {}", path.display()), error)
                .hint("check it with `kubectl config view`; --context selects another context")
        })
    }
}

/// The cache directory. Its content may be deleted at any time.
pub(crate) fn default_cache_dir() -> PathBuf {
    let base = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("plumb")
}

/// Argo CD's file with logins.
pub(crate) fn argocd_config() -> PathBuf {
    let own = variable("ARGOCD_CONFIG_DIR").map(PathBuf::from);
    let base = || variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".config")));
    let directory = own.or_else(|| Some(base()?.join("argocd")));
    directory.unwrap_or_else(std::env::temp_dir).join("config")
}

/// The address of the API server's Service, in a pod.
pub(crate) fn api_server_address() -> Option<std::net::IpAddr> {
    variable("KUBERNETES_SERVICE_HOST")?.parse().ok()
}

/// Where a user who tries something out keeps Git repositories: the temporary directory and the current directory.
pub(crate) fn usual_repositories() -> Vec<PathBuf> {
    let mut directories = vec![std::env::temp_dir(), PathBuf::from("/tmp")];
    directories.extend(std::env::current_dir());
    directories
}

/// The full path of a program that is named without one, as a shell would find it. Tools run with a cleared
/// environment, so PATH is searched here.
pub(crate) fn find_program(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 {
        return program;
    }
    let path = variable("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&program)).find(|path| path.is_file());
    found.unwrap_or(program)
}

/// The command that evaluates Jsonnet: this program again, with a hidden argument.
pub(crate) fn jsonnet_command() -> Vec<PathBuf> {
    std::env::current_exe().map(|program| vec![program, PathBuf::from("jsonnet-worker")]).unwrap_or_default()
}

/// The command that confines and watches tools: this program again, with a hidden argument.
pub(crate) fn launcher_command() -> Vec<PathBuf> {
    std::env::current_exe().map(|program| vec![program, PathBuf::from(TOOL_LAUNCHER)]).unwrap_or_default()
}

/// The hidden argument of the launcher. It is not part of the command line that is parsed, because the words behind it
/// are those of another program.
pub(crate) const TOOL_LAUNCHER: &str = "tool-launcher";

/// True if output may be coloured (<https://no-color.org>).
pub(crate) fn colour_allowed() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").as_deref() != Some("dumb")
}

/// `ARGOCD_OPTS`: options that argocd puts before those of the command line. Split at blanks outside quotes.
pub(crate) fn argocd_options() -> Vec<String> {
    split_words(&variable("ARGOCD_OPTS").unwrap_or_default())
}

/// The user's editor, as a command with its arguments.
pub(crate) fn editor() -> Vec<String> {
    let wanted = ["KUBE_EDITOR", "EDITOR", "VISUAL"].into_iter().find_map(variable);
    split_words(&wanted.unwrap_or_else(|| "vi".to_owned()))
}

fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The name of the local user.
pub(crate) fn user() -> String {
    variable("USER").unwrap_or_else(|| "plumb".to_owned())
}

/// The identity of this process in the lease.
pub(crate) fn identity() -> String {
    let host =
        variable("HOSTNAME").or_else(|| std::fs::read_to_string("/etc/hostname").ok()).unwrap_or_default();
    plumb_engine::identity(host.trim())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "the ban on env::var points to this module")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_split_as_a_shell_would() {
        assert_eq!(split_words(""), Vec::<String>::new());
        assert_eq!(split_words(" --core  --context 'my cluster' "), ["--core", "--context", "my cluster"]);
        assert_eq!(split_words(r#"code --wait -n "a b"c '"#), ["code", "--wait", "-n", "a bc", ""]);
    }
}
