//! `plumb appset generate`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use plumb_appset::reconcile::{Destinations, Rules, Situation, Write, decide};
use plumb_appset::{Generated, Settings, Total, generate};
use plumb_crd::ApplicationSet;
use plumb_kube::Selection;
use serde_json::{Value, json};

use super::create::sets_in;
use crate::context::Context;
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::repository::Offline;

/// Show what an `ApplicationSet` generates, from files and without changing anything.
///
/// The generators list, clusters, git, matrix and merge work. All repositories are the directory of --repo. With
/// --diff the Applications are compared with those of the cluster; the exit code is 1 if something would change.
///
/// Example: `plumb appset generate teams.yaml --clusters clusters.yaml --repo .`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with `ApplicationSets`; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Namespace of a set whose file names none [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
    /// File with cluster Secrets, or a list of `{name, server, labels, annotations}`.
    #[arg(long, value_name = "FILE")]
    clusters: Option<String>,
    /// Directory that stands for all repositories.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Compare with the Applications of the cluster.
    #[arg(long)]
    diff: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let clusters = args.clusters.as_deref().map(read_text).transpose()?;
    let offline = Offline::new(clusters.as_deref(), &args.repo)?;
    let namespace = args.appset_namespace.as_deref().unwrap_or(context.namespace());
    let mut sets = Vec::new();
    for file in &args.files {
        sets.extend(sets_in(&read_text(file)?)?);
    }
    let mut all = Vec::new();
    let mut code = ExitCode::Success;
    for mut set in sets {
        if set["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
            set["metadata"]["namespace"] = json!(namespace);
        }
        let set = ApplicationSet::from_json(&set)
            .map_err(|error| CommandError::because("read the ApplicationSet", error))?;
        let generated = generate(&set, &offline, &settings()).map_err(|error| {
            let what = format!("generate the Applications of {}", set.metadata.name);
            CommandError::because(what, error)
        })?;
        if args.diff {
            if show_diff(context, &set, &offline, &generated).await? != ExitCode::Success {
                code = ExitCode::No;
            }
        } else {
            all.extend(generated.applications.iter().map(complete));
        }
    }
    match args.output {
        _ if args.diff => {}
        Format::Json | Format::Yaml => context.out.object(args.output, &Value::Array(all))?,
        Format::Name | Format::Wide => {
            for application in &all {
                context.out.print(application["metadata"]["name"].as_str().unwrap_or_default());
            }
        }
    }
    Ok(code)
}

fn settings() -> Settings {
    Settings {
        new_git_file_globbing: false,
        include_hidden_directories: false,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::now(),
        seed: [0; 32],
    }
}

fn complete(application: &Value) -> Value {
    let mut application = application.clone();
    application["apiVersion"] = json!("argoproj.io/v1alpha1");
    application["kind"] = json!("Application");
    application
}

/// What the set would write now.
async fn show_diff(
    context: &Context,
    set: &ApplicationSet,
    offline: &Offline,
    generated: &Generated,
) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let namespace = Some(set.metadata.namespace.clone());
    let selection = Selection { namespace, ..Selection::default() };
    let existing = context.list(&client, &kinds::application(), &selection).await?;
    let existing: Vec<Value> = existing.iter().map(|object| object.value().clone()).collect();
    let decision = decide(&Situation {
        set,
        generated: Ok(&generated.applications),
        existing: &existing,
        unreadable: &BTreeSet::new(),
        destinations: &Destinations::new(offline.clusters(), true),
        project_exists: &|_| true,
        also_generated_by: &BTreeMap::new(),
        rules: &Rules::default(),
        git_every: Duration::ZERO,
        now: jiff::Timestamp::now(),
    });
    let rows: Vec<Vec<String>> = decision
        .writes
        .iter()
        .map(|write| match write {
            Write::Create { name, .. } => vec![name.clone(), "create".to_owned(), String::new()],
            Write::Patch { name, patch } => vec![name.clone(), "change".to_owned(), patch.to_string()],
            Write::Delete { name, .. } => vec![name.clone(), "delete".to_owned(), String::new()],
        })
        .collect();
    if let Some(failure) = &decision.failure {
        context.out.note(&failure.message);
    }
    if let Some(held) = &decision.held {
        context.out.note(held);
    }
    if rows.is_empty() && decision.held.is_none() && decision.failure.is_none() {
        context.out.note("nothing would change");
        return Ok(ExitCode::Success);
    }
    context.out.table(&["APPLICATION", "ACTION", "CHANGE"], &rows);
    Ok(ExitCode::No)
}
