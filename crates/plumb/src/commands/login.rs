//! `plumb login` and `plumb logout`

use http::Method;
use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::prompt;
use crate::remote::{Api, Flags, KnownServer, PORT_FORWARD};

/// Log in to plumb's or Argo CD's API server, for commands that go through it.
///
/// The token is kept in Argo CD's own file (`~/.config/argocd/config`), so `argocd` has the login, too, and plumb has
/// those of `argocd login --sso`: plumb itself logs in with passwords only.
///
/// Example: `plumb login argocd.example.com --username ann`
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// Address of the server: `HOST[:PORT]`; none with `--port-forward`.
    server: Option<String>,
    /// Name of the account [default: asked for].
    #[arg(long)]
    username: Option<String>,
    /// Password [default: asked for].
    #[arg(long)]
    password: Option<String>,
    /// Name of the context [default: the address of the server].
    #[arg(long)]
    name: Option<String>,
}

/// Log out: the token is revoked and removed from the file.
///
/// Example: `plumb logout argocd.example.com`
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {
    /// The context to leave.
    context: String,
}

pub(crate) async fn login(
    context: &Context,
    args: &LoginArgs,
    flags: &Flags,
) -> Result<ExitCode, CommandError> {
    let server = match (&args.server, &flags.port_forward) {
        (Some(server), None) => server.clone(),
        (None, Some(_)) => PORT_FORWARD.to_owned(),
        (Some(_), Some(_)) => {
            return Err(CommandError::usage("--port-forward finds the server: leave its address out"));
        }
        (None, None) => {
            return Err(CommandError::usage("the address of the server is missing")
                .hint("name it, or let --port-forward find it in the cluster"));
        }
    };
    let mut known = KnownServer {
        server: server.clone(),
        token: String::new(),
        plaintext: flags.plaintext,
        insecure: flags.insecure,
    };
    let username = match &args.username {
        Some(username) => username.clone(),
        None => prompt::line("Username:")?,
    };
    let password = match &args.password {
        Some(password) => password.clone(),
        None => prompt::hidden("Password:")?,
    };
    let body = json!({"username": username, "password": password});
    let api = Api::at(&known, flags)?;
    let answer = api.call(Method::POST, "/api/v1/session", Some(&body)).await?;
    let token = answer["token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| CommandError::new("the server sent no token"))?;
    token.clone_into(&mut known.token);
    let name = args.name.as_ref().unwrap_or(&server);
    let mut file = flags.file()?;
    file.log_in(name, &known);
    file.write()?;
    context.out.print(&format!("'{username}:login' logged in successfully"));
    context.out.print(&format!("Context '{name}' updated"));
    Ok(ExitCode::Success)
}

pub(crate) async fn logout(
    context: &Context,
    args: &LogoutArgs,
    flags: &Flags,
) -> Result<ExitCode, CommandError> {
    let mut file = flags.file()?;
    let unknown = || {
        CommandError::new(format!("context {} does not exist", args.context))
            .hint("`plumb context` lists them")
    };
    let known = file.server(&args.context).ok_or_else(unknown)?;
    if !known.token.is_empty() {
        Api::at(&known, flags)?.log_out().await?;
    }
    file.log_out(&args.context);
    file.write()?;
    context.out.print(&format!("Logged out from '{}'", args.context));
    Ok(ExitCode::Success)
}
