//! `plumb version`

use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Show the versions of this program and of the cluster.
///
/// Called as argocd, the version is that of the Argo CD whose commands and objects plumb follows, so that scripts
/// that compare versions go on.
///
/// Example: `plumb version --client --short`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this program's version: no cluster is asked.
    #[arg(long)]
    client: bool,
    /// Only the numbers.
    #[arg(long)]
    short: bool,
    /// How to print them.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

/// The Argo CD whose behaviour plumb follows.
const ARGO_CD: &str = "3.6.0";
const PLUMB: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn run(context: &Context, args: &Args, program: &str) -> Result<ExitCode, CommandError> {
    let own = if program == "argocd" { format!("v{ARGO_CD}+plumb.{PLUMB}") } else { format!("v{PLUMB}") };
    let server = if args.client { None } else { server(context).await };
    match args.output {
        Format::Json | Format::Yaml => {
            let mut versions = json!({"client": {"Version": own, "plumb": PLUMB, "argocd": ARGO_CD}});
            if let Some((server, version)) = server {
                versions["server"] = json!({"Server": server, "KubernetesVersion": version});
            }
            context.out.object(args.output, &versions)?;
        }
        Format::Wide | Format::Name => {
            context.out.print(&format!("{program}: {own}"));
            if !args.short {
                context.out.print(&format!("  Follows: Argo CD {ARGO_CD}"));
                context.out.print(&format!(
                    "  Platform: {}/{}",
                    std::env::consts::OS,
                    std::env::consts::ARCH
                ));
            }
            if let Some((server, version)) = server {
                context.out.print(&format!("kubernetes: {version}"));
                if !args.short {
                    context.out.print(&format!("  Server: {server}"));
                }
            }
        }
    }
    Ok(ExitCode::Success)
}

/// Address and version of the API server. Without a cluster the client's version is still an answer, so a failure is
/// only noted.
async fn server(context: &Context) -> Option<(String, String)> {
    match ask(context).await {
        Ok(server) => Some(server),
        Err(error) => {
            context.out.note(&format!("note: server version unknown: {}", error.message()));
            None
        }
    }
}

async fn ask(context: &Context) -> Result<(String, String), CommandError> {
    let client = context.client().await?;
    let version = client
        .version()
        .await
        .map_err(|error| CommandError::api("ask the API server for its version", error))?;
    Ok((client.server().trim_end_matches('/').to_owned(), version.git_version))
}
