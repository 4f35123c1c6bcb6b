//! `plumb gpg`

use http::Method;
use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::prompt;
use crate::remote::query;

/// Where the API has keys.
const PATH: &str = "/api/v1/gpgkeys";

/// The keys that commits may be signed with.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the keys.
    ///
    /// Example: `plumb gpg list`
    #[command(visible_alias = "ls")]
    List {
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Show a key.
    ///
    /// Example: `plumb gpg get 4AEE18F83AFDEB23`
    Get {
        /// Id of the key.
        key: String,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Add public keys, in the armoured format of `gpg --export --armor`.
    ///
    /// Example: `plumb gpg add --from maintainers.asc`
    Add {
        /// A file with keys; `-` is stdin.
        #[arg(long, short = 'f', value_name = "FILE")]
        from: String,
        /// Replace keys that are there.
        #[arg(long)]
        upsert: bool,
    },
    /// Remove a key.
    ///
    /// Asks for confirmation on a terminal, unless --yes is given. Exit code 1: the answer was no.
    ///
    /// Example: `plumb gpg rm 4AEE18F83AFDEB23`
    Rm {
        /// Id of the key.
        key: String,
        /// Do not ask for confirmation.
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { output } => list(context, *output).await?,
        Command::Get { key, output } => get(context, key, *output).await?,
        Command::Add { from, upsert } => add(context, from, *upsert).await?,
        Command::Rm { key, yes } => {
            let question = format!("Are you sure you want to remove the key '{key}'?");
            if context.out.is_terminal() && !yes && !prompt::confirm(&question)? {
                return Ok(ExitCode::No);
            }
            let path = query::with(PATH, &[("keyID", key)]);
            context.api().await?.call(Method::DELETE, &path, None).await?;
            context.out.print(&format!("Deleted key with key ID {key}"));
        }
    }
    Ok(ExitCode::Success)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

async fn list(context: &Context, output: Format) -> Result<(), CommandError> {
    let answer = context.api().await?.get(PATH).await?;
    let keys = answer["items"].as_array().cloned().unwrap_or_default();
    match output {
        Format::Wide => {
            let row = |key: &Value| {
                let kind = text(key, "subType").to_uppercase();
                vec![text(key, "keyID").to_owned(), kind, text(key, "owner").to_owned()]
            };
            let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
            context.out.table(&["KEYID", "TYPE", "IDENTITY"], &rows);
        }
        Format::Name => keys.iter().for_each(|key| context.out.print(text(key, "keyID"))),
        format => context.out.object(format, &Value::Array(keys))?,
    }
    Ok(())
}

async fn get(context: &Context, key: &str, output: Format) -> Result<(), CommandError> {
    let found = context.api().await?.get(&format!("{PATH}/{}", query::part(key))).await?;
    if matches!(output, Format::Json | Format::Yaml) {
        return context.out.object(output, &found);
    }
    for (label, field) in [
        ("Key ID:          ", "keyID"),
        ("Key fingerprint: ", "fingerprint"),
        ("Key subtype:     ", "subType"),
        ("Key owner:       ", "owner"),
    ] {
        context.out.print(&format!("{label}{}", text(&found, field)));
    }
    context.out.print("Key data follows until EOF:");
    context.out.print(text(&found, "keyData").trim_end());
    Ok(())
}

async fn add(context: &Context, from: &str, upsert: bool) -> Result<(), CommandError> {
    let body = json!({"keyData": read_text(from)?});
    let path = query::with(PATH, &[("upsert", if upsert { "true" } else { "" })]);
    let answer = context.api().await?.call(Method::POST, &path, Some(&body)).await?;
    for key in answer["created"]["items"].as_array().into_iter().flatten() {
        context.out.print(&format!("Created key {} of {}", text(key, "keyID"), text(key, "owner")));
    }
    for id in answer["skipped"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        context.out.note(&format!("key {id} is there already: --upsert replaces it"));
    }
    Ok(())
}
