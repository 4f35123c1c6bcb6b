//! `plumb proj`: what groups of Applications may do.

mod create;
mod delete;
mod edit;
mod get;
mod list;
mod rules;
mod windows;

use plumb_core::object::Manifest;
use plumb_crd::AppProject;
use plumb_kube::{ClusterClient, Target};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;

/// Look at projects and change what they allow.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Get(get::Args),
    Create(create::Args),
    Edit(edit::Args),
    Delete(delete::Args),
    Windows(windows::Args),
    #[command(flatten)]
    Rule(rules::Command),
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Create(args) => create::run(context, args).await,
        Command::Edit(args) => edit::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::Windows(args) => windows::run(context, args).await,
        Command::Rule(command) => rules::run(context, command).await,
    }
}

/// The project that a command is about.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProjectArg {
    /// Name of the project.
    #[arg(value_name = "PROJECT", add = crate::commands::completion::projects())]
    project: String,
}

impl ProjectArg {
    fn place(&self, context: &Context) -> Target {
        place(context, &self.project)
    }

    async fn read(&self, context: &Context, client: &ClusterClient) -> Result<Manifest, CommandError> {
        let target = self.place(context);
        client
            .get_at(&target.gvk, target.namespace.as_deref(), &target.name)
            .await
            .map_err(|error| CommandError::api(format!("read project {}", target.name), error))?
            .ok_or_else(|| {
                CommandError::new(format!(
                    "there is no project {} in namespace {}",
                    target.name,
                    context.namespace()
                ))
                .hint("`plumb proj list` shows the projects")
            })
    }
}

fn place(context: &Context, name: &str) -> Target {
    Target { gvk: kinds::project(), namespace: Some(context.namespace().to_owned()), name: name.to_owned() }
}

fn parse(object: &Manifest) -> Result<AppProject, CommandError> {
    let name = object.name().unwrap_or_default();
    AppProject::from_json(object.value())
        .map_err(|error| CommandError::because(format!("read project {name}"), error))
}
