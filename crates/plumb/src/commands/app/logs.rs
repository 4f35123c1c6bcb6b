//! `plumb app logs`

use futures::StreamExt as _;
use jiff::Timestamp;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{ClusterClient, LogOptions};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::AppArg;
use crate::select::object::ObjectChoice;
use crate::view::rows::object_rows;
use crate::view::tree::Tree;

/// Show the logs of an Application's pods.
///
/// With several pods, each line begins with the name of its pod.
///
/// Examples: `plumb app logs payments --tail 20`, `plumb app logs payments --kind Deployment --name web -f`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: ObjectChoice,
    /// Container, if a pod has several [default: the first].
    #[arg(long, short = 'c')]
    container: Option<String>,
    /// Keep running and show new lines.
    #[arg(long, short = 'f')]
    follow: bool,
    /// Only the last N lines.
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Only lines of the last N seconds.
    #[arg(long, value_name = "N")]
    since_seconds: Option<u32>,
    /// Only lines until this time, such as `2026-11-15T18:00:00Z`.
    #[arg(long, value_name = "TIME")]
    until_time: Option<Timestamp>,
    /// Only lines with this text; with `!` in front, only lines without it.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Make --filter case sensitive.
    #[arg(long, short = 'm')]
    match_case: bool,
    /// Show the log of the previous container.
    #[arg(long, short = 'p')]
    previous: bool,
    /// Print the time before each line.
    #[arg(long)]
    timestamps: bool,
}

/// How many logs are read at the same time.
const AT_ONCE: usize = 8;

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let pods = pods(context, &client, &application, &args.choice).await?;
    if pods.is_empty() {
        return Err(CommandError::new(format!("{} has no matching pods", application.metadata.name))
            .hint(format!("`plumb app get {} -o tree` shows its objects", application.metadata.name)));
    }
    let logs = containers(&pods, args)?;
    let many = logs.len() > 1;
    if args.follow {
        follow(context, &client, args, logs, many).await
    } else {
        read(context, &client, args, logs, many).await
    }
}

/// One container of one pod.
#[derive(Clone, Debug)]
struct Log {
    namespace: String,
    pod: String,
    container: Option<String>,
}

impl Log {
    fn label(&self, line: &str, many: bool) -> String {
        if many { format!("{} | {line}", self.pod) } else { line.to_owned() }
    }
}

/// The pods below the objects that match.
async fn pods(
    context: &Context,
    client: &ClusterClient,
    application: &plumb_crd::Application,
    choice: &ObjectChoice,
) -> Result<Vec<Manifest>, CommandError> {
    let tree = Tree::read(client, application).await;
    let namespace = context.object_namespace();
    let mut pods: Vec<&Manifest> = Vec::new();
    for root in object_rows(application) {
        let Some(object) = tree.find(&root) else { continue };
        for below in tree.below(object) {
            let is_match = choice.matches(
                namespace,
                below.group(),
                below.kind(),
                below.namespace().unwrap_or_default(),
                below.name().unwrap_or_default(),
            );
            if is_match {
                let found = tree.below(below);
                pods.extend(
                    found.into_iter().filter(|object| object.kind() == "Pod" && object.group().is_empty()),
                );
            }
        }
    }
    pods.sort_by_key(|pod| (pod.namespace().map(str::to_owned), pod.name().map(str::to_owned)));
    pods.dedup_by_key(|pod| pod.uid().map(str::to_owned));
    let gvk = GroupVersionKind::from_api_version("v1", "Pod");
    let mut whole = Vec::new();
    for pod in pods {
        let read = client.get_at(&gvk, pod.namespace(), pod.name().unwrap_or_default()).await;
        whole.extend(read.map_err(|error| CommandError::api("read a pod", error))?);
    }
    Ok(whole)
}

/// The containers to read.
fn containers(pods: &[Manifest], args: &Args) -> Result<Vec<Log>, CommandError> {
    let mut logs = Vec::new();
    for pod in pods {
        let names: Vec<&str> = pod
            .value()
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|container| container.get("name")?.as_str())
            .collect();
        let container = match &args.container {
            Some(wanted) if !names.contains(&wanted.as_str()) => continue,
            Some(wanted) => Some(wanted.clone()),
            // The API server requires a container. kubectl takes the first one, too.
            None => names.first().map(|name| (*name).to_owned()),
        };
        logs.push(Log {
            namespace: pod.namespace().unwrap_or_default().to_owned(),
            pod: pod.name().unwrap_or_default().to_owned(),
            container,
        });
    }
    match (&args.container, logs.is_empty()) {
        (Some(wanted), true) => Err(CommandError::new(format!("no pod has a container {wanted}"))),
        _ => Ok(logs),
    }
}

fn options(args: &Args, log: &Log) -> LogOptions {
    LogOptions {
        container: log.container.clone(),
        tail_lines: args.tail,
        previous: args.previous,
        // `--until-time` compares them; they are removed again unless the user wants them.
        timestamps: args.timestamps || args.until_time.is_some(),
        since_seconds: args.since_seconds,
        ..LogOptions::default()
    }
}

/// The line as it is printed; `None` if a flag excludes it.
fn shown(args: &Args, line: &str) -> Option<String> {
    let mut line = line;
    if let Some(until) = args.until_time
        && let Some((time, rest)) = line.split_once(' ')
    {
        if time.parse::<Timestamp>().is_ok_and(|time| time > until) {
            return None;
        }
        if !args.timestamps {
            line = rest;
        }
    }
    if let Some(filter) = &args.filter {
        let (wanted, text) = match filter.strip_prefix('!') {
            Some(text) => (false, text),
            None => (true, filter.as_str()),
        };
        let found = if args.match_case {
            line.contains(text)
        } else {
            line.to_lowercase().contains(&text.to_lowercase())
        };
        if found != wanted {
            return None;
        }
    }
    Some(line.to_owned())
}

async fn read(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    logs: Vec<Log>,
    many: bool,
) -> Result<ExitCode, CommandError> {
    let texts = futures::stream::iter(logs.into_iter().map(|log| async move {
        let text = client.logs(&log.namespace, &log.pod, &options(args, &log)).await;
        (log, text)
    }));
    let mut texts = texts.buffered(AT_ONCE);
    let mut failure = None;
    let mut answered = false;
    while let Some((log, text)) = texts.next().await {
        match text {
            Ok(text) => {
                answered = true;
                for line in text.lines().filter_map(|line| shown(args, line)) {
                    context.out.print_data(&format!("{}\n", log.label(&line, many)));
                }
            }
            Err(error) => {
                let error = CommandError::api(format!("read the log of pod {}", log.pod), error);
                if many {
                    context.out.note(&error.to_string());
                }
                failure = Some(error);
            }
        }
    }
    // An error of one pod does not hide the logs of the others.
    match failure {
        Some(error) if !answered => Err(error),
        _ => Ok(ExitCode::Success),
    }
}

async fn follow(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    logs: Vec<Log>,
    many: bool,
) -> Result<ExitCode, CommandError> {
    let (sender, mut lines) = mpsc::channel::<Result<(Log, String), CommandError>>(64);
    for log in logs {
        let (client, options, sender) = (client.clone(), options(args, &log), sender.clone());
        tokio::spawn(async move {
            let failed = |error| CommandError::api(format!("follow the log of pod {}", log.pod), error);
            let mut stream = match client.follow_logs(&log.namespace, &log.pod, &options).await {
                Ok(stream) => stream,
                Err(error) => return drop(sender.send(Err(failed(error))).await),
            };
            loop {
                let line = match stream.next_line().await {
                    Ok(Some(line)) => Ok((log.clone(), line)),
                    Ok(None) => return,
                    Err(error) => return drop(sender.send(Err(failed(error))).await),
                };
                // The receiver is gone: the command has ended.
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut failure = None;
    while let Some(line) = lines.recv().await {
        match line {
            Ok((log, line)) => {
                if let Some(line) = shown(args, &line) {
                    context.out.print_data(&format!("{}\n", log.label(&line, many)));
                }
            }
            Err(error) => {
                context.out.note(&error.to_string());
                failure = Some(error);
            }
        }
        if context.out.is_reader_gone() {
            return Ok(ExitCode::Success);
        }
    }
    Ok(if failure.is_some() { ExitCode::Error } else { ExitCode::Success })
}
