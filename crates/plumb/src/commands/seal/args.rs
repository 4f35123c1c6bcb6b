//! The command line of `plumb seal`.

use std::path::PathBuf;

use plumb_core::secrets::SealingScope;

/// Encrypt a Secret for the Sealed Secrets controller, so that Git can hold it.
///
/// Reads a Secret from a file or stdin, or makes one from --from-file, --from-env-file and --from-literal. Prints a
/// `SealedSecret` that only the controller of the cluster can open, under the same name in the same namespace unless
/// --scope says otherwise. plumb keeps no plain value: it writes none to a file and shows none.
///
/// The key comes from the certificate of the controller: from a file or an https address with --cert, which needs no
/// cluster, or else through the API server from the controller's Service.
///
/// Examples: `kubectl create secret generic db --from-file=password --dry-run=client -o yaml | plumb seal -n shop`,
/// `plumb seal --name db -n shop --from-file password.txt --cert cert.pem`,
/// `plumb seal --merge-into db.yaml --from-file password=new.txt --overwrite`, `plumb seal --re-encrypt deploy/`,
/// `plumb seal --validate deploy/`, `plumb seal --fetch-cert`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// File with Secrets; `-` is stdin. With --validate: files and folders with `SealedSecrets`.
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<String>,
    /// Name of the Secret. With --merge-into: which `SealedSecret` of the file.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// A key and its value. The list of processes (`ps`) and the history of the shell show it: prefer the others.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) from_literal: Vec<String>,
    /// A file with one value; the key is the name of the file unless another is given. `KEY=-` is stdin.
    #[arg(long, value_name = "[KEY=]FILE")]
    pub(super) from_file: Vec<String>,
    /// A file with `NAME=value` lines.
    #[arg(long, value_name = "FILE")]
    pub(super) from_env_file: Vec<String>,
    /// Type of the Secret, such as `kubernetes.io/basic-auth`.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) secret_type: Option<String>,
    /// Where the controller may open it [default: what the annotations of the Secret say, or else strict].
    #[arg(long, value_enum)]
    pub(super) scope: Option<ScopeArg>,
    #[command(flatten)]
    pub(super) controller: ControllerArgs,
    /// Take exactly one value, and print only the encrypted text.
    #[arg(long, conflicts_with_all = ["merge_into", "output"])]
    pub(super) raw: bool,
    /// Put the values into the `SealedSecret` of this file. Comments, order and everything else of the file stay.
    #[arg(long, value_name = "FILE")]
    pub(super) merge_into: Option<PathBuf>,
    /// With --merge-into: replace keys that have a value already.
    #[arg(long, requires = "merge_into")]
    pub(super) overwrite: bool,
    /// Encrypt the `SealedSecrets` of a file or a folder again with the newest key of the controller, in place. The
    /// controller does it: plumb never sees the values.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["merge_into", "raw", "validate", "files", "scope", "cert"])]
    pub(super) re_encrypt: Option<PathBuf>,
    /// Ask the controller whether it can open `SealedSecrets`. Ends with 1 if it cannot open one of them.
    #[arg(long, conflicts_with_all = ["merge_into", "raw", "scope", "cert"])]
    pub(super) validate: bool,
    /// Print the certificate of the controller, for --cert.
    #[arg(long, conflicts_with_all = ["merge_into", "raw", "validate", "re_encrypt", "files", "cert"])]
    pub(super) fetch_cert: bool,
    /// Check everything, and show what would be sealed or changed. Writes nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum)]
    pub(super) output: Option<SealFormat>,
}

/// Which controller, and which key.
#[derive(Debug, clap::Args)]
pub(super) struct ControllerArgs {
    /// Certificate of the controller: a file, or an https address.
    #[arg(long, value_name = "FILE|URL")]
    pub(super) cert: Option<String>,
    /// Set from `--controller-name`, which is an option of argocd for all commands.
    #[arg(skip = String::from("sealed-secrets-controller"))]
    pub(super) controller_name: String,
    /// Namespace of the Service of the controller. Its name is `--controller-name NAME`
    /// [default: sealed-secrets-controller].
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub(super) controller_namespace: String,
}

/// Where a sealed value may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ScopeArg {
    /// Under the same name in the same namespace.
    Strict,
    /// Under any name in the same namespace.
    NamespaceWide,
    /// Everywhere in the cluster.
    ClusterWide,
}

impl ScopeArg {
    pub(super) fn scope(self) -> SealingScope {
        match self {
            Self::Strict => SealingScope::Strict,
            Self::NamespaceWide => SealingScope::NamespaceWide,
            Self::ClusterWide => SealingScope::ClusterWide,
        }
    }
}

/// The formats of `plumb seal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SealFormat {
    /// YAML [default].
    #[default]
    Yaml,
    /// JSON.
    Json,
}

impl Args {
    /// Takes the name of the controller's Service, if the user gave one.
    pub(crate) fn name_controller(&mut self, name: Option<String>) {
        if let Some(name) = name {
            self.controller.controller_name = name;
        }
    }

    /// Are values given with options, and not as a Secret?
    pub(super) fn has_values(&self) -> bool {
        !(self.from_literal.is_empty() && self.from_file.is_empty() && self.from_env_file.is_empty())
    }
}
