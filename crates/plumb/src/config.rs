//! The one place that reads the environment. Everything below gets values.

use std::path::PathBuf;

use plumb_kube::{ClusterClient, Connection};

use crate::error::CommandError;

/// Which cluster, and where in it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// Path of the kubeconfig; default: $KUBECONFIG, then ~/.kube/config, then the pod's service account.
    #[arg(long, global = true, env = "KUBECONFIG", hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: its current one.
    #[arg(long, global = true, visible_alias = "kube-context")]
    context: Option<String>,
    /// Namespace of Applications, projects and settings.
    #[arg(long, short = 'n', global = true, env = "PLUMB_NAMESPACE", default_value = "argocd")]
    pub(crate) namespace: String,
    /// Accepted for scripts written for argocd: plumb always talks to the cluster itself.
    #[arg(long, global = true, hide = true)]
    core: bool,
}

impl ConnectionArgs {
    /// Where the cluster is.
    pub(crate) async fn connection(&self) -> Result<Connection, CommandError> {
        let path = self
            .kubeconfig
            .clone()
            .or_else(|| Some(home()?.join(".kube/config")).filter(|path| path.exists()));
        let Some(path) = path else {
            return Connection::in_cluster().map_err(|error| {
                CommandError::because("find a cluster", error).hint(
                    "there is no kubeconfig: set KUBECONFIG, pass --kubeconfig, or run inside a cluster",
                )
            });
        };
        Connection::from_kubeconfig(&path, self.context.as_deref()).await.map_err(|error| {
            CommandError::because(format!("read kubeconfig {}", path.display()), error)
                .hint("`kubectl config view` shows whether it can be read; --context chooses another context")
        })
    }

    /// A client of that cluster that knows its kinds.
    pub(crate) async fn client(&self) -> Result<ClusterClient, CommandError> {
        let connection = self.connection().await?;
        let server = connection.server();
        let client =
            connection.client().map_err(|error| CommandError::because("connect to the cluster", error))?;
        client.discover().await.map_err(|error| {
            CommandError::because(format!("ask {server} what it serves"), error)
                .hint("is the cluster up? `kubectl get --raw /readyz` tells")
        })?;
        Ok(client)
    }
}

/// The directory for everything that may be deleted at any time.
pub(crate) fn default_cache_dir() -> PathBuf {
    let base = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("plumb")
}

/// The full path of a program that is named without one, as a shell would find it. Tools run with a cleared
/// environment, so they are looked for here, once.
pub(crate) fn find_program(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 {
        return program;
    }
    let path = variable("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(&program)).find(|path| path.is_file());
    found.unwrap_or(program)
}

/// Who asks, as far as the system knows.
pub(crate) fn user() -> String {
    variable("USER").unwrap_or_else(|| "plumb".to_owned())
}

/// What this process calls itself in the lease.
pub(crate) fn identity() -> String {
    let host =
        variable("HOSTNAME").or_else(|| std::fs::read_to_string("/etc/hostname").ok()).unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "plumb" } else { host };
    format!("{host}_{}", std::process::id())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
