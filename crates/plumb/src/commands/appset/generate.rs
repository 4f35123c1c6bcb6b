//! `plumb appset generate`

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use plumb_appset::reconcile::{
    Before, DeletionBudget, Destinations, Rules, Situation, Write, decide, wrong_names,
};
use plumb_appset::{Generated, Settings, Total, generate, seed_of_uid};
use plumb_crd::ApplicationSet;
use plumb_crd::settings::{self as wire, AppSetSettings, ConfigData};
use plumb_kube::{ClusterClient, Selection};
use serde_json::{Value, json};

use super::create::sets_in;
use super::set::gvk;
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
/// Without it the exit code is 1 if an Application has no name, or the name of another one.
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
    let installed = if args.diff { Some(Installed::read(context).await?) } else { None };
    let mut all = Vec::new();
    let mut code = ExitCode::Success;
    for mut set in sets {
        if set["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
            set["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(installed) = &installed {
            installed.complete(&mut set).await?;
        }
        let set = ApplicationSet::from_json(&set)
            .map_err(|error| CommandError::because("read the ApplicationSet", error))?;
        let generated = generate(&set, &offline, &settings(&set, installed.as_ref())).map_err(|error| {
            let what = format!("generate the Applications of {}", set.metadata.name);
            CommandError::because(what, error)
        })?;
        if let Some(installed) = &installed {
            if show_diff(context, installed, &set, &offline, &generated).await? != ExitCode::Success {
                code = ExitCode::No;
            }
        } else {
            for wrong in wrong_names(&set, &generated.applications) {
                context.out.note(&wrong);
                code = ExitCode::No;
            }
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

/// Where plumb runs: what decides besides the files.
struct Installed {
    client: ClusterClient,
    in_cluster_enabled: bool,
    app_sets: AppSetSettings,
}

impl Installed {
    async fn read(context: &Context) -> Result<Self, CommandError> {
        let client = context.client().await?;
        let mut maps = Vec::new();
        for name in ["argocd-cm", "argocd-cmd-params-cm"] {
            let found = client.get_at(&kinds::config_map(), Some(context.namespace()), name).await;
            let found = found.map_err(|error| CommandError::api(format!("read ConfigMap {name}"), error))?;
            let data = found.map(|found| found.value()["data"].clone()).unwrap_or_default();
            let texts = data.as_object().into_iter().flatten();
            let texts = texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
            maps.push(texts.collect::<ConfigData>());
        }
        let (settings, problems) = wire::Settings::read(&maps[0], &maps[1]);
        for problem in problems.iter().filter(|problem| problem.place.contains("applicationsetcontroller.")) {
            context.out.note(&format!("note: {problem}"));
        }
        Ok(Self {
            client,
            in_cluster_enabled: settings.in_cluster_enabled,
            app_sets: settings.controller.app_sets,
        })
    }

    /// Adds what only the set in the cluster has: random functions and owner references depend on its UID, and
    /// deletions and rollouts on its status.
    async fn complete(&self, set: &mut Value) -> Result<(), CommandError> {
        let text = |key: &str| set["metadata"][key].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let found = self.client.get_at(&gvk(), Some(&namespace), &name).await;
        let found = found.map_err(|error| CommandError::api(format!("read ApplicationSet {name}"), error))?;
        if let Some(live) = found {
            set["metadata"]["uid"] = live.value()["metadata"]["uid"].clone();
            set["status"] = live.value()["status"].clone();
        }
        Ok(())
    }
}

fn settings(set: &ApplicationSet, installed: Option<&Installed>) -> Settings {
    Settings {
        new_git_file_globbing: installed.is_some_and(|installed| installed.app_sets.new_git_file_globbing),
        include_hidden_directories: installed
            .is_some_and(|installed| installed.app_sets.include_hidden_directories),
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::now(),
        seed: seed_of_uid(&set.metadata.uid),
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
    installed: &Installed,
    set: &ApplicationSet,
    offline: &Offline,
    generated: &Generated,
) -> Result<ExitCode, CommandError> {
    let namespace = Some(set.metadata.namespace.clone());
    let selection = Selection { namespace, ..Selection::default() };
    let existing = context.list(&installed.client, &kinds::application(), &selection).await?;
    let existing: Vec<Value> = existing.iter().map(|object| object.value().clone()).collect();
    let decision = decide(&Situation {
        set,
        generated: Ok(generated),
        existing: &existing,
        unreadable: &BTreeSet::new(),
        destinations: &Destinations::new(offline.clusters(), installed.in_cluster_enabled),
        project_exists: &|_| true,
        also_generated_by: &BTreeMap::new(),
        rules: &Rules::of(&installed.app_sets, DeletionBudget::default()),
        before: &Before::default(),
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
