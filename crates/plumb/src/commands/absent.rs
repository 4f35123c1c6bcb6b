//! argocd's commands that plumb does not have: each says why, and what to use in its place.

use std::ffi::OsString;

use crate::error::CommandError;

/// A command that does not exist here, with whatever follows it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// argocd's commands that plumb does not have.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    #[command(hide = true, disable_help_flag = true)]
    Login(Args),
    #[command(hide = true, disable_help_flag = true)]
    Relogin(Args),
    #[command(hide = true, disable_help_flag = true)]
    Logout(Args),
    #[command(hide = true, disable_help_flag = true, alias = "ctx")]
    Context(Args),
    #[command(hide = true, disable_help_flag = true)]
    Configure(Args),
    #[command(hide = true, disable_help_flag = true)]
    Account(Args),
    #[command(hide = true, disable_help_flag = true)]
    Admin(Args),
    #[command(hide = true, disable_help_flag = true, aliases = ["applicationset", "appsets", "applicationsets"])]
    Appset(Args),
    #[command(hide = true, disable_help_flag = true)]
    Cert(Args),
    #[command(hide = true, disable_help_flag = true)]
    Gpg(Args),
    #[command(hide = true, disable_help_flag = true)]
    Repocreds(Args),
}

impl Command {
    /// Says why there is no such command, and what to do.
    pub(crate) fn refuse(&self) -> CommandError {
        const LOGIN: (&str, &str) = (
            "plumb talks to the cluster of your kubeconfig, as you: there is nothing to log in to",
            "`kubectl auth whoami` says who you are; --kubeconfig and --context choose another cluster",
        );
        const SECRETS: &str = "they are read from the same Secrets and ConfigMaps as Argo CD's";
        let (name, (why, hint)) = match self {
            Self::Login(_) => ("login", LOGIN),
            Self::Relogin(_) => ("relogin", LOGIN),
            Self::Logout(_) => ("logout", LOGIN),
            Self::Context(_) => (
                "context",
                (
                    "plumb uses the contexts of your kubeconfig",
                    "`kubectl config get-contexts` lists them; --context chooses one",
                ),
            ),
            Self::Configure(_) => ("configure", ("plumb keeps no configuration of its own", "leave it out")),
            Self::Account(_) => (
                "account",
                (
                    "plumb has no accounts: what you may do is what the cluster lets you do",
                    "`kubectl auth can-i --list --namespace argocd` shows what you may",
                ),
            ),
            Self::Admin(_) => (
                "admin",
                (
                    "what it does is done by other commands, or by kubectl",
                    "`kubectl get applications,appprojects -n argocd -o yaml` is an export",
                ),
            ),
            Self::Appset(_) => {
                ("appset", ("plumb does not make Applications of ApplicationSets yet", "`plumb app list`"))
            }
            Self::Cert(_) => {
                ("cert", (SECRETS, "`kubectl edit configmap argocd-ssh-known-hosts-cm -n argocd`"))
            }
            Self::Gpg(_) => ("gpg", (SECRETS, "`kubectl edit configmap argocd-gpg-keys-cm -n argocd`")),
            Self::Repocreds(_) => (
                "repocreds",
                (
                    SECRETS,
                    "`kubectl get secrets -n argocd -l argocd.argoproj.io/secret-type=repo-creds` lists them",
                ),
            ),
        };
        CommandError::usage(format!("there is no command {name} here: {why}")).hint(hint)
    }
}
