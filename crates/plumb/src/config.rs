//! The one place that reads the environment. Everything below gets values.

use std::path::PathBuf;

use plumb_kube::Connection;

use crate::error::CommandError;

/// Which cluster, and where in it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConnectionArgs {
    /// Path of the kubeconfig; default: $KUBECONFIG, then ~/.kube/config, then the pod's service account.
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: its current one.
    #[arg(long, global = true, visible_alias = "kube-context", value_name = "NAME")]
    context: Option<String>,
    /// Namespace of Applications, projects and settings [default: argocd].
    ///
    /// Where a command is about single objects (`app logs`, `app actions`, `app get-resource`, `cluster add` …)
    /// it is the objects' namespace, as argocd has it; --control-namespace is then the other one.
    #[arg(long, short = 'n', global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Namespace of Applications, projects and settings, where --namespace means something else; default:
    /// `$PLUMB_NAMESPACE`.
    #[arg(long, global = true, hide_short_help = true, value_name = "NAMESPACE")]
    control_namespace: Option<String>,
    /// Accepted for scripts written for argocd: plumb always talks to the cluster itself.
    #[arg(long, global = true, hide = true)]
    core: bool,
}

impl ConnectionArgs {
    /// The control-plane namespace, if one was chosen.
    pub(crate) fn control_namespace(&self) -> Option<String> {
        self.control_namespace.clone().or_else(|| variable("PLUMB_NAMESPACE"))
    }

    /// The kubeconfig that is meant, whether it is there or not.
    fn kubeconfig(&self) -> Option<PathBuf> {
        self.kubeconfig.clone().or_else(|| variable("KUBECONFIG").map(PathBuf::from))
    }

    /// Is there no kubeconfig, so that the pod's service account is used?
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
            CommandError::new("there is no kubeconfig").hint("set KUBECONFIG, or pass --kubeconfig")
        })
    }

    /// Where the cluster is.
    pub(crate) async fn connection(&self) -> Result<Connection, CommandError> {
        let Some(path) = self.path() else {
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
}

/// Options of argocd that would do nothing here: most are about its API server, and plumb has none between you and
/// the cluster.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Foreign {
    #[arg(id = "argocd-server", long = "server", global = true, hide = true, value_name = "TEXT")]
    server: Option<String>,
    #[arg(id = "argocd-auth-token", long = "auth-token", global = true, hide = true, value_name = "TEXT")]
    auth_token: Option<String>,
    #[arg(id = "argocd-grpc-web", long = "grpc-web", global = true, hide = true)]
    grpc_web: bool,
    #[arg(
        id = "argocd-grpc-web-root-path",
        long = "grpc-web-root-path",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    grpc_web_root_path: Option<String>,
    #[arg(id = "argocd-plaintext", long = "plaintext", global = true, hide = true)]
    plaintext: bool,
    #[arg(id = "argocd-insecure", long = "insecure", global = true, hide = true)]
    insecure: bool,
    #[arg(id = "argocd-port-forward", long = "port-forward", global = true, hide = true)]
    port_forward: bool,
    #[arg(
        id = "argocd-port-forward-namespace",
        long = "port-forward-namespace",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    port_forward_namespace: Option<String>,
    #[arg(
        id = "argocd-argocd-context",
        long = "argocd-context",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    argocd_context: Option<String>,
    #[arg(id = "argocd-server-crt", long = "server-crt", global = true, hide = true, value_name = "TEXT")]
    server_crt: Option<String>,
    #[arg(id = "argocd-client-crt", long = "client-crt", global = true, hide = true, value_name = "TEXT")]
    client_crt: Option<String>,
    #[arg(
        id = "argocd-client-crt-key",
        long = "client-crt-key",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    client_crt_key: Option<String>,
    #[arg(
        id = "argocd-header",
        long = "header",
        short = 'H',
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    header: Vec<String>,
    #[arg(
        id = "argocd-http-retry-max",
        long = "http-retry-max",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    http_retry_max: Option<String>,
    #[arg(id = "argocd-server-name", long = "server-name", global = true, hide = true, value_name = "TEXT")]
    server_name: Option<String>,
    #[arg(
        id = "argocd-controller-name",
        long = "controller-name",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    controller_name: Option<String>,
    #[arg(
        id = "argocd-repo-server-name",
        long = "repo-server-name",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    repo_server_name: Option<String>,
    #[arg(id = "argocd-redis-name", long = "redis-name", global = true, hide = true, value_name = "TEXT")]
    redis_name: Option<String>,
    #[arg(
        id = "argocd-redis-haproxy-name",
        long = "redis-haproxy-name",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    redis_haproxy_name: Option<String>,
    #[arg(
        id = "argocd-redis-compress",
        long = "redis-compress",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    redis_compress: Option<String>,
    #[arg(id = "argocd-config", long = "config", global = true, hide = true, value_name = "TEXT")]
    config: Option<String>,
    #[arg(id = "argocd-prompts-enabled", long = "prompts-enabled", global = true, hide = true, value_name = "TEXT", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    prompts_enabled: Option<bool>,
    #[arg(id = "argocd-logformat", long = "logformat", global = true, hide = true, value_name = "TEXT")]
    logformat: Option<String>,
    #[arg(id = "argocd-loglevel", long = "loglevel", global = true, hide = true, value_name = "TEXT")]
    loglevel: Option<String>,
}

/// Why an option is refused, and what to do instead.
struct Refusal {
    why: &'static str,
    hint: &'static str,
}

const API: Refusal = Refusal {
    why: "it is about Argo CD's API server, and plumb talks to the cluster itself",
    hint: "leave it out; --kubeconfig and --context choose the cluster",
};
const CONFIG: Refusal = Refusal {
    why: "plumb keeps no configuration of its own: cluster and user are those of the kubeconfig",
    hint: "leave it out; --kubeconfig and --context choose the cluster",
};
const PROMPTS: Refusal = Refusal {
    why: "only deletions ask, and only on a terminal",
    hint: "leave it out; --yes answers beforehand",
};
const LOG: Refusal = Refusal {
    why: "a command keeps no log: what it has to say is on stderr",
    hint: "leave it out; `plumb run` has --log-format and --log",
};

impl Foreign {
    /// Names the first one that was given, with what to do instead.
    pub(crate) fn refuse(&self) -> Result<(), CommandError> {
        let given = [
            ("--server", self.server.is_some(), &API),
            ("--auth-token", self.auth_token.is_some(), &API),
            ("--grpc-web", self.grpc_web, &API),
            ("--grpc-web-root-path", self.grpc_web_root_path.is_some(), &API),
            ("--plaintext", self.plaintext, &API),
            ("--insecure", self.insecure, &API),
            ("--port-forward", self.port_forward, &API),
            ("--port-forward-namespace", self.port_forward_namespace.is_some(), &API),
            ("--argocd-context", self.argocd_context.is_some(), &API),
            ("--server-crt", self.server_crt.is_some(), &API),
            ("--client-crt", self.client_crt.is_some(), &API),
            ("--client-crt-key", self.client_crt_key.is_some(), &API),
            ("--header", !self.header.is_empty(), &API),
            ("--http-retry-max", self.http_retry_max.is_some(), &API),
            ("--server-name", self.server_name.is_some(), &API),
            ("--controller-name", self.controller_name.is_some(), &API),
            ("--repo-server-name", self.repo_server_name.is_some(), &API),
            ("--redis-name", self.redis_name.is_some(), &API),
            ("--redis-haproxy-name", self.redis_haproxy_name.is_some(), &API),
            ("--redis-compress", self.redis_compress.is_some(), &API),
            ("--config", self.config.is_some(), &CONFIG),
            ("--prompts-enabled", self.prompts_enabled.is_some(), &PROMPTS),
            ("--logformat", self.logformat.is_some(), &LOG),
            ("--loglevel", self.loglevel.is_some(), &LOG),
        ];
        match given.iter().find(|(_, given, _)| *given) {
            None => Ok(()),
            Some((flag, _, refusal)) => Err(CommandError::refused_flag(flag, refusal.why).hint(refusal.hint)),
        }
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

/// The command that evaluates Jsonnet: this program again, with a hidden argument.
pub(crate) fn jsonnet_command() -> Vec<PathBuf> {
    std::env::current_exe().map(|program| vec![program, PathBuf::from("jsonnet-worker")]).unwrap_or_default()
}

/// May output be coloured? (<https://no-color.org>)
pub(crate) fn colour_allowed() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").as_deref() != Some("dumb")
}

/// `ARGOCD_OPTS`: options that argocd puts before those of the command line. Split at blanks; quotes keep
/// blanks together.
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

/// Who asks, as far as the system knows.
pub(crate) fn user() -> String {
    variable("USER").unwrap_or_else(|| "plumb".to_owned())
}

/// What this process calls itself in the lease.
pub(crate) fn identity() -> String {
    let host =
        variable("HOSTNAME").or_else(|| std::fs::read_to_string("/etc/hostname").ok()).unwrap_or_default();
    plumb_engine::identity(host.trim())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
fn variable(name: &str) -> Option<String> {
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
