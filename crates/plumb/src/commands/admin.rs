//! `plumb admin`

use plumb_crd::settings::SecretData;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;

/// The Secret with the first password.
const INITIAL: &str = "argocd-initial-admin-secret";

/// What needs credentials of the cluster, even where other commands go through the API server.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the first password of the account `admin`.
    ///
    /// Example: `plumb admin initial-password`
    InitialPassword,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let Command::InitialPassword = args.command;
    let client = context.client().await?;
    let found = client
        .get_at(&kinds::secret(), Some(context.namespace()), INITIAL)
        .await
        .map_err(|error| CommandError::api(format!("read the Secret {INITIAL}"), error))?;
    let password = found.as_ref().and_then(|secret| SecretData::read(secret.value()).ok());
    let password = password.as_ref().and_then(|(data, _)| data.get("password"));
    let password = password.ok_or_else(|| {
        CommandError::new(format!("the Secret {INITIAL} does not exist")).hint(
            "it is deleted after the password was changed; `plumb run` creates it in a new installation",
        )
    })?;
    context.out.print(password.expose());
    context
        .out
        .note("Change this password with `plumb account update-password`, and delete the Secret then.");
    Ok(ExitCode::Success)
}
