//! `plumb version`

use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Show the versions of this program and of the API server.
///
/// Called as argocd, it prints the version of Argo CD that plumb is compatible with, so that scripts that compare
/// versions keep working. Without a cluster it prints the version of the client alone.
///
/// Example: `plumb version --client --short`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the version of this program. Sends no request.
    #[arg(long)]
    client: bool,
    /// Only the version numbers.
    #[arg(long)]
    short: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

/// The version of Argo CD that plumb is compatible with.
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
                context.out.print(&format!("  Compatible with: Argo CD {ARGO_CD}"));
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

/// URL and version of the API server. A failure is only noted: the version of the client is still printed.
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
        .map_err(|error| CommandError::api("read the version of the API server", error))?;
    Ok((client.server().trim_end_matches('/').to_owned(), version.git_version))
}
