//! `plumb cert`

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::prompt;
use crate::remote::query;

/// Where the API has certificates.
const PATH: &str = "/api/v1/certificates";
/// What begins a certificate in a file.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// Certificates of Git servers, and the keys of SSH servers.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the certificates and keys.
    ///
    /// Example: `plumb cert list --cert-type ssh`
    #[command(visible_alias = "ls")]
    List {
        /// Only `ssh` or `https`.
        #[arg(long, value_parser = ["ssh", "https"])]
        cert_type: Option<String>,
        /// Only servers whose name matches this glob.
        #[arg(long, value_name = "GLOB")]
        hostname_pattern: Option<String>,
        /// Sort by `hostname` or `type`.
        #[arg(long, value_parser = ["hostname", "type"])]
        sort: Option<String>,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Add the certificates that a server may have, in PEM format.
    ///
    /// Example: `plumb cert add-tls git.example.com --from ca.pem`
    AddTls {
        /// Name of the server.
        server: String,
        /// A file with the certificates; `-` is stdin.
        #[arg(long, value_name = "FILE", default_value = "-")]
        from: String,
        /// Replace certificates that are there.
        #[arg(long)]
        upsert: bool,
    },
    /// Add keys of SSH servers, in the format of `known_hosts`.
    ///
    /// Example: `ssh-keyscan git.example.com | plumb cert add-ssh --batch`
    AddSsh {
        /// A file with the keys; `-` is stdin.
        #[arg(long, value_name = "FILE", default_value = "-")]
        from: String,
        /// Accepted for scripts written for argocd: keys are read from stdin anyway.
        #[arg(long, hide = true)]
        batch: bool,
        /// Replace keys that are there.
        #[arg(long)]
        upsert: bool,
    },
    /// Remove certificates and keys of servers.
    ///
    /// Asks for confirmation on a terminal, unless --yes is given. Exit code 1: the answer was no.
    ///
    /// Example: `plumb cert rm git.example.com --cert-type ssh`
    Rm {
        /// Name of the server, as a glob.
        server: String,
        /// Only `ssh` or `https`.
        #[arg(long, value_parser = ["ssh", "https"])]
        cert_type: Option<String>,
        /// Only keys of this kind, such as `ssh-ed25519`.
        #[arg(long)]
        cert_sub_type: Option<String>,
        /// Do not ask for confirmation.
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { cert_type, hostname_pattern, sort, output } => {
            let (kind, pattern) = (cert_type.as_deref(), hostname_pattern.as_deref());
            list(context, kind.unwrap_or_default(), pattern.unwrap_or_default(), sort.as_deref(), *output)
                .await
        }
        Command::AddTls { server, from, upsert } => add_tls(context, server, from, *upsert).await,
        Command::AddSsh { from, batch: _, upsert } => add_ssh(context, from, *upsert).await,
        Command::Rm { server, cert_type, cert_sub_type, yes } => {
            let question = format!("Are you sure you want to remove the certificates of '{server}'?");
            if context.out.is_terminal() && !yes && !prompt::confirm(&question)? {
                return Ok(ExitCode::No);
            }
            let (kind, sub_kind) = (cert_type.as_deref(), cert_sub_type.as_deref());
            remove(context, server, kind.unwrap_or_default(), sub_kind.unwrap_or_default()).await
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn items(answer: &Value) -> Vec<Value> {
    answer["items"].as_array().cloned().unwrap_or_default()
}

async fn list(
    context: &Context,
    kind: &str,
    pattern: &str,
    sort: Option<&str>,
    output: Format,
) -> Result<ExitCode, CommandError> {
    let path = query::with(PATH, &[("certType", kind), ("hostNamePattern", pattern)]);
    let mut found = items(&context.api().await?.get(&path).await?);
    let order: [&str; 3] = match sort {
        Some("type") => ["certType", "serverName", "certSubType"],
        _ => ["serverName", "certType", "certSubType"],
    };
    found.sort_by_key(|item| order.map(|field| text(item, field).to_owned()));
    match output {
        Format::Wide => {
            let row = |item: &Value| {
                ["serverName", "certType", "certSubType", "certInfo"]
                    .map(|field| text(item, field).to_owned())
                    .into()
            };
            let rows: Vec<Vec<String>> = found.iter().map(row).collect();
            context.out.table(&["HOSTNAME", "TYPE", "SUBTYPE", "INFO"], &rows);
        }
        Format::Name => found.iter().for_each(|item| context.out.print(text(item, "serverName"))),
        format => context.out.object(format, &Value::Array(found))?,
    }
    Ok(ExitCode::Success)
}

async fn create(context: &Context, items: Vec<Value>, upsert: bool) -> Result<Value, CommandError> {
    let path = query::with(PATH, &[("upsert", if upsert { "true" } else { "" })]);
    let body = json!({"items": items});
    context.api().await?.call(Method::POST, &path, Some(&body)).await
}

async fn add_tls(
    context: &Context,
    server: &str,
    from: &str,
    upsert: bool,
) -> Result<ExitCode, CommandError> {
    let data = read_text(from)?;
    let count = data.matches(BEGIN).count();
    if count == 0 {
        return Err(CommandError::usage("no certificate in PEM format was given"));
    }
    let entry = json!({"serverName": server, "certType": "https", "certData": STANDARD.encode(data)});
    create(context, vec![entry], upsert).await?;
    context.out.print(&format!("Created entry with {count} PEM certificates for repository server {server}"));
    Ok(ExitCode::Success)
}

/// The keys in lines of `known_hosts`, one entry per host.
fn host_keys(text: &str) -> Result<Vec<Value>, CommandError> {
    let mut keys = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [hosts, kind, key, ..] = words.as_slice() else {
            return Err(CommandError::usage(format!("line {}: expected HOST TYPE KEY", at + 1)));
        };
        if hosts.starts_with(['|', '@']) {
            let why = format!("line {}: hashed names and markers are not supported", at + 1);
            return Err(CommandError::usage(why));
        }
        keys.extend(hosts.split(',').map(|host| {
            json!({"serverName": host, "certType": "ssh", "certSubType": kind, "certData": STANDARD.encode(key)})
        }));
    }
    Ok(keys)
}

async fn add_ssh(context: &Context, from: &str, upsert: bool) -> Result<ExitCode, CommandError> {
    let keys = host_keys(&read_text(from)?)?;
    if keys.is_empty() {
        return Err(
            CommandError::usage("no key was given").hint("`ssh-keyscan HOST` prints those of a server")
        );
    }
    let created = create(context, keys, upsert).await?;
    context.out.print(&format!("Successfully created {} SSH known host entries", items(&created).len()));
    Ok(ExitCode::Success)
}

async fn remove(
    context: &Context,
    server: &str,
    kind: &str,
    sub_kind: &str,
) -> Result<ExitCode, CommandError> {
    let pairs = [("hostNamePattern", server), ("certType", kind), ("certSubType", sub_kind)];
    let removed = context.api().await?.call(Method::DELETE, &query::with(PATH, &pairs), None).await?;
    let removed = items(&removed);
    for item in &removed {
        let (host, kind, sub_kind) =
            (text(item, "serverName"), text(item, "certType"), text(item, "certSubType"));
        context.out.print(&format!("Removed cert for '{host}' of type '{kind}' (subtype '{sub_kind}')"));
    }
    if removed.is_empty() {
        context.out.print("No certificates were removed (none matched the given patterns)");
    }
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_known_hosts() {
        let keys = host_keys("# a comment\n\ngit.example.com,10.0.0.1 ssh-ed25519 AAAA me@there\n").unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[1]["serverName"], "10.0.0.1");
        assert_eq!(keys[0]["certData"], STANDARD.encode("AAAA"));
        assert!(host_keys("git.example.com ssh-rsa").is_err());
        assert!(host_keys("|1|x|y ssh-rsa AAAA").is_err());
    }
}
