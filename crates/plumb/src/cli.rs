//! The command line: names, options that all commands share, and which command runs.

use std::ffi::OsString;
use std::time::Duration;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands;
use crate::complete;
use crate::config::{self, ConnectionArgs};
use crate::context::{Context, NamespaceMeans};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::remote::{Api, Choice, Flags, choose};
use crate::unsupported::{UnsupportedCommand, UnsupportedFlags};

/// A `GitOps` engine in which `OutOfSync` means that something is wrong.
#[derive(Debug, Parser)]
#[command(
    name = "plumb",
    version,
    about,
    propagate_version = true,
    max_term_width = 100,
    after_help = "plumb uses the cluster of your kubeconfig, or after `plumb login` the API of a server. \
                  Exit codes: 0 success, 1 the answer is no (something differs, a sync failed), 2 invalid \
                  command line, 20 error."
)]
struct Cli {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    unsupported: UnsupportedFlags,
    #[command(subcommand)]
    command: Command,
}

/// One variant per command. Each is in the file of its name.
#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<commands::run::Args>),
    Install(Box<commands::install::Args>),
    Migrate(commands::migrate::Args),
    #[command(visible_alias = "application")]
    App(Box<commands::app::Args>),
    #[command(visible_aliases = ["applicationset", "appsets", "applicationsets"])]
    Appset(Box<commands::appset::Args>),
    Doctor(Box<commands::doctor::Args>),
    Drift(commands::drift::Args),
    Fix(Box<commands::fix::Args>),
    Adopt(Box<commands::adopt::Args>),
    Unmask(Box<commands::unmask::Args>),
    Lint(Box<commands::lint::Args>),
    Diff(Box<commands::diff::Args>),
    Orphans(commands::orphans::Args),
    Render(Box<commands::render::Args>),
    Seal(Box<commands::seal::Args>),
    #[command(visible_alias = "project")]
    Proj(Box<commands::proj::Args>),
    Cluster(commands::cluster::Args),
    Repo(commands::repo::Args),
    Repocreds(commands::repocreds::Args),
    Cert(commands::cert::Args),
    Gpg(commands::gpg::Args),
    Login(commands::login::LoginArgs),
    Logout(commands::login::LogoutArgs),
    #[command(visible_alias = "ctx")]
    Context(commands::contexts::Args),
    Account(commands::account::Args),
    Admin(commands::admin::Args),
    Version(commands::version::Args),
    Pause(commands::pause::PauseArgs),
    Resume(commands::pause::ResumeArgs),
    Undo(commands::undo::Args),
    Schema(commands::schema::Args),
    Mcp(commands::mcp::Args),
    SupportBundle(commands::support_bundle::Args),
    Completion(commands::completion::Args),
    Man(commands::man::Args),
    #[command(hide = true)]
    JsonnetWorker(commands::jsonnet_worker::Args),
    #[command(flatten)]
    Unsupported(UnsupportedCommand),
}

impl Command {
    /// True for the commands that are about logins at servers.
    fn is_about_logins(&self) -> bool {
        matches!(self, Self::Login(_) | Self::Logout(_) | Self::Context(_) | Self::Account(_))
    }

    /// True for the commands that work through the API of a server and with the kubeconfig.
    fn has_both_ways(&self) -> bool {
        matches!(
            self,
            Self::App(_)
                | Self::Proj(_)
                | Self::Cluster(_)
                | Self::Repo(_)
                | Self::Repocreds(_)
                | Self::Cert(_)
                | Self::Gpg(_)
        )
    }

    fn namespace_means(&self) -> NamespaceMeans {
        match self {
            Self::App(args) => args.namespace_means(),
            Self::Cluster(args) => args.namespace_means(),
            Self::Seal(_) => NamespaceMeans::Objects,
            _ => NamespaceMeans::ControlPlane,
        }
    }
}

/// Runs the command that the process was started with.
pub(crate) fn start() -> Result<ExitCode, CommandError> {
    clap_complete::CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    let words = words();
    let name = program_name(words.first());
    let command = Cli::command().name(name).bin_name(name);
    let words = plain_switches(&command, words);
    let parsed = command.try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    let mut cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, usage errors to stderr.
            let code = if error.use_stderr() { ExitCode::Usage } else { ExitCode::Success };
            // A closed pipe is not an error: the reader has what it wanted.
            let _ = error.print();
            return Ok(code);
        }
    };
    if let Command::Unsupported(command) = &cli.command {
        return Err(command.refuse());
    }
    if let Command::Seal(args) = &mut cli.command {
        args.name_controller(cli.unsupported.controller_name.take());
    }
    if let Command::Run(args) = &mut cli.command {
        args.set_server_flags(cli.unsupported.take_for_server()?);
    }
    let mut remote = match &cli.command {
        command if command.is_about_logins() || command.has_both_ways() => cli.unsupported.take_for_remote(),
        _ => Flags::default(),
    };
    cli.unsupported.refuse()?;
    let (core, chooses_cluster) = (cli.connection.is_core(), cli.connection.chooses_cluster());
    let mut context = Context::new(cli.connection, cli.command.namespace_means(), config::colour_allowed());
    let goes_through =
        cli.command.has_both_ways() && choose(&remote, core, chooses_cluster) == Choice::Server;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandError::because("start the runtime", error))?;
    // A port is forwarded with the kubeconfig, and stays open while the command runs.
    if remote.port_forward.is_some() {
        let connection = runtime.block_on(context.connect())?;
        runtime.block_on(remote.forward(&connection, context.namespace()))?;
    }
    if goes_through {
        context = context.through(Api::of(&remote)?);
    }
    let outcome = runtime.block_on(Box::pin(run(&context, name, cli.command, &remote)));
    // An abandoned read of stdin or name lookup must not delay the exit. But the workers need a moment to end: the
    // exit of the process destroys the random number state of the TLS library, and a worker that is closing a
    // connection at that moment would crash.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    outcome
}

/// Long enough for workers to end, too short for a user to notice.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

async fn run(
    context: &Context,
    name: &'static str,
    command: Command,
    remote: &Flags,
) -> Result<ExitCode, CommandError> {
    match command {
        Command::Run(args) => commands::run::run(context, *args).await,
        Command::Install(args) => commands::install::run(context, &args).await,
        Command::Migrate(args) => commands::migrate::run(context, &args).await,
        Command::App(args) => commands::app::run(context, &args).await,
        Command::Appset(args) => commands::appset::run(context, &args).await,
        Command::Doctor(args) => commands::doctor::run(context, &args).await,
        Command::Drift(args) => commands::drift::run(context, &args).await,
        Command::Fix(args) => commands::fix::run(context, &args).await,
        Command::Adopt(args) => commands::adopt::run(context, &args).await,
        Command::Unmask(args) => commands::unmask::run(context, &args).await,
        Command::Lint(args) => commands::lint::run(context, &args).await,
        Command::Diff(args) => commands::diff::run(context, &args).await,
        Command::Orphans(args) => commands::orphans::run(context, &args).await,
        Command::Render(args) => commands::render::run(context, &args).await,
        Command::Seal(args) => commands::seal::run(context, &args).await,
        Command::Proj(args) => commands::proj::run(context, &args).await,
        Command::Cluster(args) => commands::cluster::run(context, &args).await,
        Command::Repo(args) => commands::repo::run(context, &args).await,
        Command::Repocreds(args) => commands::repocreds::run(context, &args).await,
        Command::Cert(args) => commands::cert::run(context, &args).await,
        Command::Gpg(args) => commands::gpg::run(context, &args).await,
        Command::Login(args) => commands::login::login(context, &args, remote).await,
        Command::Logout(args) => commands::login::logout(context, &args, remote).await,
        Command::Context(args) => commands::contexts::run(context, &args, remote),
        Command::Account(args) => commands::account::run(context, &args, remote).await,
        Command::Admin(args) => commands::admin::run(context, &args).await,
        Command::Version(args) => commands::version::run(context, &args, name).await,
        Command::Man(args) => commands::man::run(context, &args, Cli::command().name(name)),
        Command::Pause(args) => commands::pause::pause(context, &args).await,
        Command::Resume(args) => commands::pause::resume(context, &args).await,
        Command::Undo(args) => commands::undo::run(context, &args).await,
        Command::Schema(args) => commands::schema::run(context, &args),
        Command::Mcp(args) => commands::mcp::run(context, &args).await,
        Command::SupportBundle(args) => commands::support_bundle::run(context, &args).await,
        Command::Completion(args) => commands::completion::run(context, &args, name),
        Command::JsonnetWorker(args) => commands::jsonnet_worker::run(context, &args),
        Command::Unsupported(command) => Err(command.refuse()),
    }
}

/// The arguments of the command line. Called as argocd, those of `ARGOCD_OPTS` come first.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if program_name(words.first()) == "argocd" && !words.is_empty() {
        let defaults = config::argocd_options();
        words.splice(1..1, defaults.into_iter().map(OsString::from));
    }
    words
}

/// argocd accepts a value for a switch: `--prune=true` is `--prune`, and `--prune=false` is nothing.
fn plain_switches(command: &clap::Command, words: Vec<OsString>) -> Vec<OsString> {
    let mut here = command;
    let mut plain = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    plain.extend(words.next());
    while let Some(word) = words.next() {
        if word == "--" {
            plain.push(word);
            plain.extend(words.by_ref());
            break;
        }
        let text = word.to_str().unwrap_or_default();
        if let Some(inner) = here.find_subcommand(text) {
            here = inner;
        }
        let is_switch = |name: &str| {
            let named = |arg: &&clap::Arg| arg.get_long() == Some(name);
            let arg = here.get_arguments().find(named).or_else(|| command.get_arguments().find(named));
            arg.is_some_and(|arg| matches!(arg.get_action(), ArgAction::SetTrue))
        };
        let given = text.strip_prefix("--").and_then(|text| text.split_once('='));
        match given.filter(|(name, _)| is_switch(name)) {
            Some((name, "true" | "True" | "TRUE" | "t" | "T" | "1")) => {
                plain.push(format!("--{name}").into());
            }
            Some((_, "false" | "False" | "FALSE" | "f" | "F" | "0")) => {}
            _ => plain.push(word),
        }
    }
    plain
}

/// The name of this program in its own help: the name of the link or copy that was started.
fn program_name(first: Option<&OsString>) -> &'static str {
    let file = first.and_then(|word| std::path::Path::new(word).file_stem()?.to_str());
    match file {
        Some("argocd") => "argocd",
        Some("kubectl-plumb") => "kubectl plumb",
        _ => "plumb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_switch_may_have_a_value_as_argocd_has_it() {
        let plain = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let plain = plain_switches(&Cli::command(), words);
            plain.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(plain("argocd app sync web --prune=true --dry-run=false"), "argocd app sync web --prune");
        assert_eq!(plain("argocd --core=true app list"), "argocd --core app list");
        // An option that takes a value keeps it, and so does everything after `--`.
        let kept = "argocd app set web --self-heal=false --ref=true --values x=true -- --prune=true";
        assert_eq!(plain(kept), kept);
        assert_eq!(plain("argocd app sync web --prune=perhaps"), "argocd app sync web --prune=perhaps");
    }

    #[test]
    fn the_name_of_the_link_decides() {
        for (path, name) in [
            ("/usr/local/bin/argocd", "argocd"),
            ("argocd.exe", "argocd"),
            ("kubectl-plumb", "kubectl plumb"),
            ("target/debug/plumb", "plumb"),
            ("something", "plumb"),
        ] {
            assert_eq!(program_name(Some(&OsString::from(path))), name, "{path}");
        }
        assert_eq!(program_name(None), "plumb");
    }
}
