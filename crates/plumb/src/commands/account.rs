//! `plumb account`

use http::Method;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::prompt;
use crate::remote::query::part;
use crate::remote::{Api, Flags};

/// Accounts of the API server: what they may do, their tokens and passwords. Needs `plumb login`.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// May the account do it? Prints `yes` or `no`.
    ///
    /// Example: `plumb account can-i sync applications 'default/*'`
    CanI {
        /// What is done: `get`, `sync`, `delete` …
        action: String,
        /// The kind of thing: `applications`, `clusters` …
        resource: String,
        /// Which one: `PROJECT/NAME`, an address …
        object: String,
    },
    /// List the accounts.
    ///
    /// Example: `plumb account list`
    List {
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Show an account and its tokens.
    ///
    /// Example: `plumb account get --account ci`
    Get {
        /// Name of the account [default: your own].
        #[arg(long, short = 'a')]
        account: Option<String>,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Show who you are.
    ///
    /// Example: `plumb account get-user-info`
    GetUserInfo {
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Create a token of an account, and print it.
    ///
    /// Example: `plumb account generate-token --account ci --expires-in 24h`
    GenerateToken {
        /// Name of the account [default: your own].
        #[arg(long, short = 'a')]
        account: Option<String>,
        /// When it ends, such as `24h`; `0s` is never.
        #[arg(long, short = 'e', default_value = "0s")]
        expires_in: String,
        /// Its id [default: a random one].
        #[arg(long)]
        id: Option<String>,
    },
    /// Delete a token of an account.
    ///
    /// Example: `plumb account delete-token --account ci ID`
    DeleteToken {
        /// Name of the account [default: your own].
        #[arg(long, short = 'a')]
        account: Option<String>,
        /// Its id.
        id: String,
    },
    /// Change a password. All tokens of the account end.
    ///
    /// Example: `plumb account update-password`
    UpdatePassword {
        /// Name of the account [default: your own].
        #[arg(long)]
        account: Option<String>,
        /// Your own password [default: asked for].
        #[arg(long)]
        current_password: Option<String>,
        /// The new password [default: asked for].
        #[arg(long)]
        new_password: Option<String>,
    },
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

async fn name_of(api: &Api, given: Option<&String>) -> Result<String, CommandError> {
    match given {
        Some(name) => Ok(name.clone()),
        None => api.get("/api/v1/session/userinfo").await.map(|info| text(&info, "username").to_owned()),
    }
}

pub(crate) async fn run(context: &Context, args: &Args, flags: &Flags) -> Result<ExitCode, CommandError> {
    let api = if context.connection.is_core() { context.api().await? } else { Api::of(flags)? };
    match &args.command {
        Command::CanI { action, resource, object } => {
            let object: Vec<String> = object.split('/').map(part).collect();
            let path =
                format!("/api/v1/account/can-i/{}/{}/{}", part(resource), part(action), object.join("/"));
            let answer = api.get(&path).await?;
            context.out.print(text(&answer, "value"));
        }
        Command::List { output } => list(context, &api, *output).await?,
        Command::Get { account, output } => {
            let name = name_of(&api, account.as_ref()).await?;
            let account = api.get(&format!("/api/v1/account/{}", part(&name))).await?;
            match output {
                Format::Json | Format::Yaml => context.out.object(*output, &account)?,
                Format::Wide | Format::Name => show(context, &account),
            }
        }
        Command::GetUserInfo { output } => user_info(context, &api, *output).await?,
        Command::GenerateToken { account, expires_in, id } => {
            let name = name_of(&api, account.as_ref()).await?;
            let span = expires_in
                .parse::<jiff::SignedDuration>()
                .map_err(|error| CommandError::because("read --expires-in", error).exit(ExitCode::Usage))?;
            let body = json!({"name": name, "expiresIn": span.as_secs(), "id": id});
            let path = format!("/api/v1/account/{}/token", part(&name));
            let answer = api.call(Method::POST, &path, Some(&body)).await?;
            context.out.print(text(&answer, "token"));
        }
        Command::DeleteToken { account, id } => {
            let name = name_of(&api, account.as_ref()).await?;
            let path = format!("/api/v1/account/{}/token/{}", part(&name), part(id));
            api.call(Method::DELETE, &path, None).await?;
        }
        Command::UpdatePassword { account, current_password, new_password } => {
            let ask = |given: &Option<String>, question: &str| match given {
                Some(password) => Ok(password.clone()),
                None => prompt::hidden(question),
            };
            let current = ask(current_password, "Your own password:")?;
            let new = ask(new_password, "The new password:")?;
            let body = json!({"name": account, "currentPassword": current, "newPassword": new});
            api.call(Method::PUT, "/api/v1/account/password", Some(&body)).await?;
            context.out.print("Password updated");
        }
    }
    Ok(ExitCode::Success)
}

async fn list(context: &Context, api: &Api, output: Format) -> Result<(), CommandError> {
    let answer = api.get("/api/v1/account").await?;
    let accounts = answer["items"].as_array().cloned().unwrap_or_default();
    match output {
        Format::Wide => {
            let rows: Vec<Vec<String>> = accounts
                .iter()
                .map(|account| {
                    let enabled = account["enabled"].as_bool().unwrap_or_default();
                    vec![text(account, "name").to_owned(), enabled.to_string(), capabilities(account)]
                })
                .collect();
            context.out.table(&["NAME", "ENABLED", "CAPABILITIES"], &rows);
        }
        Format::Name => accounts.iter().for_each(|account| context.out.print(text(account, "name"))),
        format => context.out.object(format, &Value::Array(accounts))?,
    }
    Ok(())
}

fn capabilities(account: &Value) -> String {
    let names = account["capabilities"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

fn show(context: &Context, account: &Value) {
    context.out.print(&format!("Name:         {}", text(account, "name")));
    context.out.print(&format!("Enabled:      {}", account["enabled"].as_bool().unwrap_or_default()));
    context.out.print(&format!("Capabilities: {}", capabilities(account)));
    let when = |value: &Value| {
        let seconds = value.as_i64().or_else(|| value.as_str()?.parse().ok()).filter(|seconds| *seconds > 0);
        let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        time.map_or_else(|| "never".to_owned(), |time| time.to_string())
    };
    let tokens = account["tokens"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = tokens
        .map(|token| vec![text(token, "id").to_owned(), when(&token["issuedAt"]), when(&token["expiresAt"])])
        .collect();
    context.out.print("Tokens:");
    context.out.table(&["ID", "ISSUED AT", "EXPIRING AT"], &rows);
}

async fn user_info(context: &Context, api: &Api, output: Format) -> Result<(), CommandError> {
    let info = api.get("/api/v1/session/userinfo").await?;
    if matches!(output, Format::Json | Format::Yaml) {
        return context.out.object(output, &info);
    }
    let logged_in = info["loggedIn"].as_bool().unwrap_or_default();
    context.out.print(&format!("Logged In: {logged_in}"));
    if logged_in {
        let groups = info["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
        context.out.print(&format!("Username: {}", text(&info, "username")));
        context.out.print(&format!("Issuer: {}", text(&info, "iss")));
        context.out.print(&format!("Groups: {}", groups.collect::<Vec<_>>().join(",")));
    }
    Ok(())
}
