//! `plumb repo add`

use plumb_core::project::shown_repo_url;
use std::path::PathBuf;

use plumb_crd::settings::name_hash;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::edit::file::{first_line_of_stdin, read_path};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::secrets::write::{self as secrets, NewSecret};

/// Register a repository with its credentials.
///
/// The connection is not tested; `plumb repo list` shows whether the apps that use it can read it.
///
/// Examples: `plumb repo add https://example.com/payments.git --username ci --password-stdin < token`,
/// `plumb repo add git@example.com:payments.git --ssh-private-key-path ~/.ssh/id_ed25519`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// URL of the repository.
    repo: String,
    /// Type of the repository.
    #[arg(long = "type", default_value = "git", value_parser = ["git", "helm", "oci"])]
    kind: String,
    /// Name, which chart dependencies can refer to.
    #[arg(long)]
    name: Option<String>,
    /// Only for this project.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
    /// User name.
    #[arg(long)]
    username: Option<String>,
    /// Password or token. Other users of this machine can see it while the command runs.
    #[arg(long, conflicts_with = "password_stdin")]
    password: Option<String>,
    /// Read the password or token from the first line of stdin.
    #[arg(long)]
    password_stdin: bool,
    /// Bearer token.
    #[arg(long)]
    bearer_token: Option<String>,
    /// File with an ssh private key.
    #[arg(long, value_name = "FILE")]
    ssh_private_key_path: Option<PathBuf>,
    /// File with a client certificate.
    #[arg(long, value_name = "FILE", requires = "tls_client_cert_key_path")]
    tls_client_cert_path: Option<PathBuf>,
    /// File with the client certificate's key.
    #[arg(long, value_name = "FILE", requires = "tls_client_cert_path")]
    tls_client_cert_key_path: Option<PathBuf>,
    /// Accept any ssh host key.
    #[arg(long)]
    insecure_ignore_host_key: bool,
    /// Accept any certificate.
    #[arg(long)]
    insecure_skip_server_verification: bool,
    /// Fetch Git LFS files.
    #[arg(long)]
    enable_lfs: bool,
    /// The repository is an OCI registry (with --type helm).
    #[arg(long)]
    enable_oci: bool,
    /// Use plain http for an OCI registry.
    #[arg(long)]
    insecure_oci_force_http: bool,
    /// Send user name and password with the first request.
    #[arg(long)]
    force_http_basic_auth: bool,
    /// Proxy for http(s).
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Hosts for which the proxy is not used.
    #[arg(long, value_name = "HOSTS")]
    no_proxy: Option<String>,
    /// Update a repository that is already registered.
    #[arg(long)]
    upsert: bool,
    /// Refused: use a token.
    #[arg(long, hide = true)]
    github_app_id: Option<String>,
    /// Refused: use a token.
    #[arg(long, hide = true)]
    github_app_installation_id: Option<String>,
    /// Refused: use a token.
    #[arg(long, hide = true)]
    github_app_private_key_path: Option<String>,
    /// Refused: use a token.
    #[arg(long, hide = true)]
    gcp_service_account_key_path: Option<String>,
    /// Refused: use a token.
    #[arg(long, hide = true)]
    use_azure_workload_identity: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    refuse(args)?;
    let values = values(args)?;
    let client = context.client().await?;
    let project = args.project.as_deref().unwrap_or_default();
    let secret = NewSecret {
        name: &format!("repo-{}", name_hash(&[&args.repo, project])),
        secret_type: "repository",
        what: &format!("repository {}", args.repo),
        labels: Map::new(),
        annotations: Map::new(),
        values,
    };
    let result = secrets::write(context, &client, secret, args.upsert).await?;
    context.out.print(&format!("Repository '{}' {result}", shown_repo_url(&args.repo)));
    Ok(ExitCode::Success)
}

fn refuse(args: &Args) -> Result<(), CommandError> {
    let apps = [
        ("--github-app-id", args.github_app_id.is_some()),
        ("--github-app-installation-id", args.github_app_installation_id.is_some()),
        ("--github-app-private-key-path", args.github_app_private_key_path.is_some()),
        ("--gcp-service-account-key-path", args.gcp_service_account_key_path.is_some()),
        ("--use-azure-workload-identity", args.use_azure_workload_identity),
    ];
    match apps.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(CommandError::refused_flag(flag, "plumb cannot get tokens from cloud providers yet")
                .hint("use a token: --username and --password-stdin, or --bearer-token"))
        }
        None => Ok(()),
    }
}

fn values(args: &Args) -> Result<Map<String, Value>, CommandError> {
    let mut values = Map::new();
    let mut set = |field: &str, text: Option<String>| {
        if let Some(text) = text {
            values.insert(field.to_owned(), json!(text));
        }
    };
    let file = |path: &Option<PathBuf>| path.as_deref().map(read_path).transpose();
    set("url", Some(args.repo.clone()));
    set("type", Some(args.kind.clone()));
    set("name", args.name.clone());
    set("project", args.project.clone());
    set("username", args.username.clone());
    set("password", if args.password_stdin { Some(first_line_of_stdin()?) } else { args.password.clone() });
    set("bearerToken", args.bearer_token.clone());
    set("sshPrivateKey", file(&args.ssh_private_key_path)?);
    set("tlsClientCertData", file(&args.tls_client_cert_path)?);
    set("tlsClientCertKey", file(&args.tls_client_cert_key_path)?);
    set("proxy", args.proxy.clone());
    set("noProxy", args.no_proxy.clone());
    let flags = [
        ("insecureIgnoreHostKey", args.insecure_ignore_host_key),
        ("insecure", args.insecure_skip_server_verification),
        ("enableLfs", args.enable_lfs),
        ("enableOCI", args.enable_oci),
        ("insecureOCIForceHttp", args.insecure_oci_force_http),
        ("forceHttpBasicAuth", args.force_http_basic_auth),
    ];
    for (field, given) in flags {
        set(field, given.then(|| "true".to_owned()));
    }
    Ok(values)
}
