//! argocd's commands and flags that plumb does not have. Each refusal says why, and what to use instead.

use std::ffi::OsString;

use crate::config;
use crate::error::CommandError;
use crate::remote::{Flags, PortForward};

/// The arguments of an unsupported command, which are ignored.
#[derive(Debug, clap::Args)]
pub(crate) struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// argocd's commands that plumb does not have. Hidden from help.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum UnsupportedCommand {
    #[command(hide = true, disable_help_flag = true)]
    Relogin(Rest),
    #[command(hide = true, disable_help_flag = true)]
    Configure(Rest),
}

impl UnsupportedCommand {
    /// The error: why plumb does not have the command, and what to use instead.
    pub(crate) fn refuse(&self) -> CommandError {
        let (name, (why, hint)) = match self {
            Self::Relogin(_) => ("relogin", ("a login is always a new one", "use `plumb login SERVER`")),
            Self::Configure(_) => ("configure", ("plumb has no configuration file", "leave it out")),
        };
        CommandError::usage(format!("command {name} is not supported: {why}")).hint(hint)
    }
}

/// Flags that argocd has for its clients, and that mean something else to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerFlags {
    /// `--server off`.
    pub(crate) without_api: bool,
    /// `--insecure`, or `ARGOCD_SERVER_INSECURE`.
    pub(crate) without_tls: bool,
}

/// Flags of argocd that would do nothing here. Most are about the connection to its API server.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct UnsupportedFlags {
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
    // `plumb seal` has a use for it.
    #[arg(
        id = "argocd-controller-name",
        long = "controller-name",
        global = true,
        hide = true,
        value_name = "TEXT"
    )]
    pub(crate) controller_name: Option<String>,
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

/// Why a flag is refused, and what to do instead.
struct Refusal {
    why: &'static str,
    hint: &'static str,
}

const API: Refusal = Refusal {
    why: "this command uses the Kubernetes API directly",
    hint: "leave it out; --kubeconfig and --context select the cluster",
};
const RETRIES: Refusal = Refusal {
    why: "plumb sends no request again by itself",
    hint: "leave it out, and run the command again",
};
const CONFIG: Refusal = Refusal {
    why: "plumb has no configuration file: cluster and user are those of the kubeconfig",
    hint: "leave it out; --kubeconfig and --context select the cluster",
};
const PROMPTS: Refusal = Refusal {
    why: "plumb only asks before deletions, and only on a terminal",
    hint: "leave it out; --yes skips the question",
};
const LOG: Refusal = Refusal {
    why: "commands do not log: their messages are on stderr",
    hint: "leave it out; `plumb run` has --log-format and --log-level",
};

impl UnsupportedFlags {
    /// The flags that `plumb run` has, too; they are then not refused.
    pub(crate) fn take_for_server(&mut self) -> Result<ServerFlags, CommandError> {
        let without_api = match self.server.take().as_deref() {
            None | Some("on") => false,
            Some("off") => true,
            Some(other) => {
                return Err(CommandError::usage(format!("--server {other}: expected `on` or `off`")));
            }
        };
        let without_tls = std::mem::take(&mut self.insecure)
            || config::variable("ARGOCD_SERVER_INSECURE").is_some_and(|text| is_true(&text));
        Ok(ServerFlags { without_api, without_tls })
    }

    /// The flags about Argo CD's API server, for commands that go through it; they are then not refused. plumb uses REST,
    /// which every server and every proxy understands, so `--grpc-web` changes nothing.
    pub(crate) fn take_for_remote(&mut self) -> Flags {
        self.grpc_web = false;
        let namespace = self.port_forward_namespace.take();
        let forwards = std::mem::take(&mut self.port_forward) || namespace.is_some();
        // Without a forwarded port, the name of the pods means nothing.
        let port_forward = forwards.then(|| PortForward { namespace, server_name: self.server_name.take() });
        Flags {
            port_forward,
            headers: std::mem::take(&mut self.header),
            server_crt: self.server_crt.take().map(Into::into),
            client_crt: self.client_crt.take().map(Into::into),
            client_crt_key: self.client_crt_key.take().map(Into::into),
            server: self.server.take(),
            auth_token: self.auth_token.take(),
            plaintext: std::mem::take(&mut self.plaintext),
            insecure: std::mem::take(&mut self.insecure),
            root_path: self.grpc_web_root_path.take(),
            context: self.argocd_context.take(),
            config: self.config.take().map(Into::into),
            forwarded: None,
        }
    }

    /// An error for the first one that was given.
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
            ("--http-retry-max", self.http_retry_max.is_some(), &RETRIES),
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

/// Argo CD's reading of a variable that is true or false: what is not a word for true is false.
fn is_true(text: &str) -> bool {
    matches!(text.trim(), "1" | "t" | "T" | "true" | "TRUE" | "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_true_by_argo_cds_words() {
        for text in ["true", "True", "1", " true "] {
            assert!(is_true(text), "{text}");
        }
        for text in ["", "false", "0", "yes"] {
            assert!(!is_true(text), "{text}");
        }
    }
}
