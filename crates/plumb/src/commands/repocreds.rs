//! `plumb repocreds`

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::file::{first_line_of_stdin, read_path};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::prompt;
use crate::remote::query;

/// Where the API has templates of credentials.
const PATH: &str = "/api/v1/repocreds";

/// Credentials for all repositories whose URL begins alike. They are never shown.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them.
    ///
    /// Example: `plumb repocreds list -o url`
    #[command(visible_alias = "ls")]
    List {
        /// Output format: wide, json, yaml, or url.
        #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "json", "yaml", "url"])]
        output: String,
    },
    Add(Box<AddArgs>),
    /// Remove them.
    ///
    /// Asks for confirmation on a terminal, unless --yes is given. Exit code 1: the answer was no.
    ///
    /// Example: `plumb repocreds rm https://git.example.com/payments/`
    Rm {
        /// The beginning of the URLs.
        #[arg(required = true, value_name = "URL")]
        urls: Vec<String>,
        /// Do not ask for confirmation.
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

/// Add credentials.
///
/// Examples: `plumb repocreds add https://git.example.com/payments/ --username ci --password-stdin < token`,
/// `plumb repocreds add git@git.example.com:payments --ssh-private-key-path ~/.ssh/id_ed25519`
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The beginning of the URLs.
    url: String,
    /// Type of the repositories.
    #[arg(long = "type", default_value = "git", value_parser = ["git", "helm", "oci"])]
    kind: String,
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
    /// Id of a GitHub App.
    #[arg(long, value_name = "ID", requires = "github_app_private_key_path")]
    github_app_id: Option<i64>,
    /// Id of the installation of the GitHub App.
    #[arg(long, value_name = "ID")]
    github_app_installation_id: Option<i64>,
    /// File with the private key of the GitHub App.
    #[arg(long, value_name = "FILE")]
    github_app_private_key_path: Option<PathBuf>,
    /// URL of the API of GitHub Enterprise.
    #[arg(long, value_name = "URL")]
    github_app_enterprise_base_url: Option<String>,
    /// File with the key of a Google service account.
    #[arg(long, value_name = "FILE")]
    gcp_service_account_key_path: Option<PathBuf>,
    /// The repositories are OCI registries (with --type helm).
    #[arg(long)]
    enable_oci: bool,
    /// Send user name and password with the first request.
    #[arg(long)]
    force_http_basic_auth: bool,
    /// Replace credentials that are there.
    #[arg(long)]
    upsert: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { output } => list(context, output).await?,
        Command::Add(args) => {
            let path = query::with(PATH, &[("upsert", if args.upsert { "true" } else { "" })]);
            let creds = creds(args)?;
            context.api().await?.call(Method::POST, &path, Some(&creds)).await?;
            context.out.print(&format!("Repository credentials for '{}' added", args.url));
        }
        Command::Rm { urls, yes } => {
            for url in urls {
                let question = format!("Are you sure you want to remove the credentials for '{url}'?");
                if context.out.is_terminal() && !yes && !prompt::confirm(&question)? {
                    return Ok(ExitCode::No);
                }
                let path = format!("{PATH}/{}", query::part(url));
                context.api().await?.call(Method::DELETE, &path, None).await?;
                context.out.print(&format!("Repository credentials for '{url}' removed"));
            }
        }
    }
    Ok(ExitCode::Success)
}

async fn list(context: &Context, output: &str) -> Result<(), CommandError> {
    let answer = context.api().await?.get(PATH).await?;
    let found = answer["items"].as_array().cloned().unwrap_or_default();
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    match output {
        "url" => found.iter().for_each(|item| context.out.print(&text(item, "url"))),
        "json" => context.out.object(Format::Json, &Value::Array(found))?,
        "yaml" => context.out.object(Format::Yaml, &Value::Array(found))?,
        _ => {
            let row = |item: &Value| ["url", "type", "username"].map(|field| text(item, field)).into();
            let rows: Vec<Vec<String>> = found.iter().map(row).collect();
            context.out.table(&["URL PATTERN", "TYPE", "USERNAME"], &rows);
        }
    }
    Ok(())
}

/// The credentials as the API takes them.
fn creds(args: &AddArgs) -> Result<Value, CommandError> {
    let mut creds = json!({"url": args.url, "type": args.kind});
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            creds[field] = value;
        }
    };
    let file = |path: &Option<PathBuf>| path.as_deref().map(read_path).transpose();
    let password = if args.password_stdin { Some(first_line_of_stdin()?) } else { args.password.clone() };
    set("username", args.username.clone().map(Value::from));
    set("password", password.map(Value::from));
    set("bearerToken", args.bearer_token.clone().map(Value::from));
    set("sshPrivateKey", file(&args.ssh_private_key_path)?.map(Value::from));
    set("tlsClientCertData", file(&args.tls_client_cert_path)?.map(Value::from));
    set("tlsClientCertKey", file(&args.tls_client_cert_key_path)?.map(Value::from));
    set("githubAppID", args.github_app_id.map(Value::from));
    set("githubAppInstallationID", args.github_app_installation_id.map(Value::from));
    set("githubAppPrivateKey", file(&args.github_app_private_key_path)?.map(Value::from));
    set("githubAppEnterpriseBaseUrl", args.github_app_enterprise_base_url.clone().map(Value::from));
    set("gcpServiceAccountKey", file(&args.gcp_service_account_key_path)?.map(Value::from));
    set("enableOCI", args.enable_oci.then_some(json!(true)));
    set("forceHttpBasicAuth", args.force_http_basic_auth.then_some(json!(true)));
    Ok(creds)
}
