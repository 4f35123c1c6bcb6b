//! `plumb proj role`

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::json_path::{list, map};
use crate::edit::merge;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::remote::query;
use crate::select::project::ProjectArg;

/// Roles of a project: what they permit, who has them, and their tokens.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the roles.
    ///
    /// Example: `plumb proj role list payments`
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        project: ProjectArg,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Show what a role permits, and its tokens.
    ///
    /// Example: `plumb proj role get payments ci`
    Get {
        #[command(flatten)]
        role: RoleArg,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
    /// Create a role.
    ///
    /// Example: `plumb proj role create payments ci --description "Deployments"`
    Create {
        #[command(flatten)]
        role: RoleArg,
        /// Description of the role.
        #[arg(long)]
        description: Option<String>,
    },
    /// Delete a role. Its tokens end.
    ///
    /// Example: `plumb proj role delete payments ci`
    Delete(RoleArg),
    /// Permit an action, or forbid it.
    ///
    /// Example: `plumb proj role add-policy payments ci --action sync --object '*'`
    AddPolicy(PolicyArgs),
    /// Remove a policy.
    ///
    /// Example: `plumb proj role remove-policy payments ci --action sync --object '*'`
    RemovePolicy(PolicyArgs),
    /// Give the role to the members of a group.
    ///
    /// Example: `plumb proj role add-group payments ci team-payments`
    AddGroup(GroupArgs),
    /// Take the role from the members of a group.
    ///
    /// Example: `plumb proj role remove-group payments ci team-payments`
    RemoveGroup(GroupArgs),
    /// Create a token of the role, and print it.
    ///
    /// Example: `plumb proj role create-token payments ci --expires-in 24h --token-only`
    CreateToken {
        #[command(flatten)]
        role: RoleArg,
        /// When it ends, such as `24h`; `0s` is never.
        #[arg(long, short = 'e', default_value = "0s")]
        expires_in: String,
        /// Its id [default: a random one].
        #[arg(long, short = 'i')]
        id: Option<String>,
        /// Print the token and nothing else.
        #[arg(long, short = 't')]
        token_only: bool,
    },
    /// Delete a token.
    ///
    /// Example: `plumb proj role delete-token payments ci 1763467200`
    DeleteToken {
        #[command(flatten)]
        role: RoleArg,
        /// When it was issued, in seconds since 1970, as `list-tokens --unixtime` prints it; or its id.
        token: String,
    },
    /// List the tokens of a role.
    ///
    /// Example: `plumb proj role list-tokens payments ci`
    ListTokens {
        #[command(flatten)]
        role: RoleArg,
        /// Print times in seconds since 1970.
        #[arg(long, short = 'u')]
        unixtime: bool,
        /// Output format.
        #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
        output: Format,
    },
}

/// A role of a project.
#[derive(Clone, Debug, clap::Args)]
struct RoleArg {
    #[command(flatten)]
    project: ProjectArg,
    /// Name of the role.
    role: String,
}

/// A policy.
#[derive(Debug, clap::Args)]
struct PolicyArgs {
    #[command(flatten)]
    role: RoleArg,
    /// The action: `get`, `sync`, `delete` …
    #[arg(long, short = 'a')]
    action: String,
    /// The Applications of the project, as a glob.
    #[arg(long, short = 'o')]
    object: String,
    /// `allow` or `deny`.
    #[arg(long, short = 'p', default_value = "allow", value_parser = ["allow", "deny"])]
    permission: String,
    /// The kind of thing: `applications`, `applicationsets`, `logs`, `exec`, `repositories`, `clusters`.
    #[arg(long, short = 'r', default_value = "applications")]
    resource: String,
}

/// A group.
#[derive(Debug, clap::Args)]
struct GroupArgs {
    #[command(flatten)]
    role: RoleArg,
    /// Name of the group.
    group: String,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { project, output } => show_all(context, project, *output).await?,
        Command::Get { role, output } => show(context, role, *output).await?,
        Command::Create { role, description } => {
            let mut new = json!({"name": role.role});
            if let Some(text) = description {
                new["description"] = json!(text);
            }
            change(context, &role.project, |roles| {
                if roles.iter().any(|known| known["name"] == new["name"]) {
                    return Err(CommandError::new(format!("role {} already exists", role.role)));
                }
                roles.push(new.clone());
                Ok(())
            })
            .await?;
            context.out.print(&format!("Role '{}' created", role.role));
        }
        Command::Delete(role) => {
            change(context, &role.project, |roles| {
                let before = roles.len();
                roles.retain(|known| known["name"] != json!(role.role));
                if roles.len() == before { Err(missing(&role.role)) } else { Ok(()) }
            })
            .await?;
            context.out.print(&format!("Role '{}' deleted", role.role));
        }
        Command::AddPolicy(args) => {
            entry(context, &args.role, "policies", &policy(context, args), true).await?;
        }
        Command::RemovePolicy(args) => {
            entry(context, &args.role, "policies", &policy(context, args), false).await?;
        }
        Command::AddGroup(args) => entry(context, &args.role, "groups", &args.group, true).await?,
        Command::RemoveGroup(args) => entry(context, &args.role, "groups", &args.group, false).await?,
        Command::CreateToken { role, expires_in, id, token_only } => {
            create_token(context, role, expires_in, id.as_deref(), *token_only).await?;
        }
        Command::DeleteToken { role, token } => delete_token(context, role, token).await?,
        Command::ListTokens { role, unixtime, output } => {
            show_tokens(context, role, *unixtime, *output).await?;
        }
    }
    Ok(ExitCode::Success)
}

fn missing(role: &str) -> CommandError {
    CommandError::new(format!("role {role} does not exist")).hint("`plumb proj role list PROJECT` lists them")
}

/// Changes the roles of a project.
async fn change(
    context: &Context,
    project: &ProjectArg,
    edit: impl Fn(&mut Vec<Value>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let client = context.client().await?;
    // For its error, if there is no such project.
    project.read(context, &client).await?;
    merge::edit_spec(&client, &project.target(context), |spec| {
        edit(list(map(spec).entry("roles").or_insert(Value::Null)))
    })
    .await
    .map(drop)
}

/// Adds a text to a list of a role, or removes it.
async fn entry(
    context: &Context,
    role: &RoleArg,
    field: &str,
    text: &str,
    add: bool,
) -> Result<(), CommandError> {
    change(context, &role.project, |roles| {
        let found = roles.iter_mut().find(|known| known["name"] == json!(role.role));
        let entries =
            list(map(found.ok_or_else(|| missing(&role.role))?).entry(field).or_insert(Value::Null));
        let position = entries.iter().position(|entry| entry.as_str() == Some(text));
        match (add, position) {
            (true, Some(_)) => return Err(CommandError::new(format!("{text} is in {field} already"))),
            (true, None) => entries.push(json!(text)),
            (false, Some(at)) => drop(entries.remove(at)),
            (false, None) => return Err(CommandError::new(format!("{text} is not in {field}"))),
        }
        Ok(())
    })
    .await?;
    let what = if add { "added to" } else { "removed from" };
    context.out.print(&format!("'{text}' {what} {field} of role '{}'", role.role));
    Ok(())
}

fn policy(context: &Context, args: &PolicyArgs) -> String {
    let (project, role) = (args.role.project.target(context).name, &args.role.role);
    format!(
        "p, proj:{project}:{role}, {}, {}, {project}/{}, {}",
        args.resource, args.action, args.object, args.permission
    )
}

async fn show_all(context: &Context, project: &ProjectArg, output: Format) -> Result<(), CommandError> {
    let object = project.read(context, &context.client().await?).await?;
    let roles = object.value()["spec"]["roles"].as_array().cloned().unwrap_or_default();
    let text = |role: &Value, field: &str| role[field].as_str().unwrap_or_default().to_owned();
    match output {
        Format::Wide => {
            let rows: Vec<Vec<String>> =
                roles.iter().map(|role| vec![text(role, "name"), text(role, "description")]).collect();
            context.out.table(&["ROLE-NAME", "DESCRIPTION"], &rows);
        }
        Format::Name => roles.iter().for_each(|role| context.out.print(&text(role, "name"))),
        format => context.out.object(format, &roles.into_iter().map(without_tokens).collect())?,
    }
    Ok(())
}

/// The role as it is printed as data. Tokens in the spec are an older place for them.
fn without_tokens(mut role: Value) -> Value {
    map(&mut role).remove("jwtTokens");
    role
}

async fn show(context: &Context, role: &RoleArg, output: Format) -> Result<(), CommandError> {
    let object = role.project.read(context, &context.client().await?).await?;
    let roles = object.value()["spec"]["roles"].as_array().cloned().unwrap_or_default();
    let found = roles.iter().find(|known| known["name"] == json!(role.role));
    let found = found.ok_or_else(|| missing(&role.role))?;
    match output {
        Format::Wide => {}
        Format::Name => {
            context.out.print(&role.role);
            return Ok(());
        }
        format => return context.out.object(format, &without_tokens(found.clone())),
    }
    let project = role.project.target(context).name;
    context.out.print(&format!("Role Name:     {}", role.role));
    context.out.print(&format!("Description:   {}", found["description"].as_str().unwrap_or_default()));
    context.out.print("Policies:");
    context.out.print(&format!("p, proj:{project}:{}, projects, get, {project}, allow", role.role));
    let texts = |field: &str| {
        let entries = found[field].as_array().cloned().unwrap_or_default();
        entries.into_iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    for policy in texts("policies") {
        context.out.print(&policy);
    }
    for group in texts("groups") {
        context.out.print(&format!("g, {group}, proj:{project}:{}", role.role));
    }
    context.out.print("JWT Tokens:");
    let rows: Vec<Vec<String>> =
        tokens(object.value(), &role.role).iter().map(|token| row(token, false)).collect();
    context.out.table(&["ID", "ISSUED-AT", "EXPIRES-AT"], &rows);
    Ok(())
}

async fn show_tokens(
    context: &Context,
    role: &RoleArg,
    unixtime: bool,
    output: Format,
) -> Result<(), CommandError> {
    let project = role.project.read(context, &context.client().await?).await?;
    let tokens = tokens(project.value(), &role.role);
    let rows: Vec<Vec<String>> = tokens.iter().map(|token| row(token, unixtime)).collect();
    match output {
        Format::Wide if rows.is_empty() => context.out.note(&format!("no tokens for {}", role.role)),
        Format::Wide => context.out.table(&["ID", "ISSUED AT", "EXPIRES AT"], &rows),
        Format::Name => rows.iter().filter_map(|row| row.first()).for_each(|id| context.out.print(id)),
        format => context.out.object(format, &Value::from(tokens))?,
    }
    Ok(())
}

/// The tokens of a role: those of the status count, as older ones of the spec are copied there.
fn tokens(project: &Value, role: &str) -> Vec<Value> {
    let by_role = &project["status"]["jwtTokensByRole"][role]["items"];
    by_role.as_array().cloned().unwrap_or_default()
}

fn row(token: &Value, unixtime: bool) -> Vec<String> {
    let time = |field: &str, none: &str| match token[field].as_i64().filter(|seconds| *seconds > 0) {
        None => none.to_owned(),
        Some(seconds) if unixtime => seconds.to_string(),
        Some(seconds) => Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default(),
    };
    let never = if unixtime { "0" } else { "<none>" };
    vec![token["id"].as_str().unwrap_or_default().to_owned(), time("iat", ""), time("exp", never)]
}

fn path(context: &Context, role: &RoleArg) -> String {
    let project = role.project.target(context).name;
    format!("/api/v1/projects/{}/roles/{}/token", query::part(&project), query::part(&role.role))
}

async fn create_token(
    context: &Context,
    role: &RoleArg,
    expires_in: &str,
    id: Option<&str>,
    token_only: bool,
) -> Result<(), CommandError> {
    let span = expires_in
        .parse::<jiff::SignedDuration>()
        .map_err(|error| CommandError::because("read --expires-in", error).exit(ExitCode::Usage))?;
    let body = json!({"expiresIn": span.as_secs(), "id": id});
    let answer = context.api().await?.call(Method::POST, &path(context, role), Some(&body)).await?;
    let token = answer["token"].as_str().unwrap_or_default();
    if !token_only {
        let project = role.project.target(context).name;
        context.out.print(&format!("Create token succeeded for proj:{project}:{}.", role.role));
        if span.is_zero() {
            context.out.print("  Expires At: Never");
        } else {
            let until = Timestamp::now().checked_add(span).map(|time| time.to_string());
            context.out.print(&format!("  Expires At: {}", until.unwrap_or_default()));
        }
        context.out.print(&format!("  Token: {token}"));
        return Ok(());
    }
    context.out.print(token);
    Ok(())
}

async fn delete_token(context: &Context, role: &RoleArg, token: &str) -> Result<(), CommandError> {
    let project = role.project.read(context, &context.client().await?).await?;
    let is_named = |known: &Value| {
        known["id"].as_str() == Some(token)
            || known["iat"].as_i64().is_some_and(|iat| iat.to_string() == token)
    };
    let found = tokens(project.value(), &role.role).into_iter().find(is_named);
    let found = found.ok_or_else(|| {
        CommandError::new(format!("role {} has no token {token}", role.role))
            .hint("`plumb proj role list-tokens PROJECT ROLE --unixtime` lists them")
    })?;
    let id = found["id"].as_str().unwrap_or_default();
    let path = format!("{}/{}", path(context, role), found["iat"].as_i64().unwrap_or_default());
    context.api().await?.call(Method::DELETE, &query::with(&path, &[("id", id)]), None).await?;
    context.out.print(&format!("Deleted token of role '{}'", role.role));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_times() {
        let token = json!({"id": "a", "iat": 1_763_467_200, "exp": 0});
        assert_eq!(row(&token, true), ["a", "1763467200", "0"]);
        assert_eq!(row(&token, false), ["a", "2025-11-18T12:00:00Z", "<none>"]);
    }
}
