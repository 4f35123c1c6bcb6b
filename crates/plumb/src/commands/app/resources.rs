//! `plumb app resources`

use std::collections::BTreeSet;

use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::project::{OrphanPatterns, Project};
use plumb_crd::{AppProject, Application, to_project_rules};
use plumb_kube::{ClusterClient, PUSHES_CONFIG_MAP, STATE_CONFIG_MAP, Selection};
use serde_json::{Value, json};

use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::select::app::{AppArg, read};
use crate::view::tree::{self, Tree, owners};
use crate::view::watch;

/// List the objects of an Application, and the orphaned ones in its namespaces.
///
/// Examples: `plumb app resources payments`, `plumb app resources payments --output tree`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Only orphaned objects: in the app's namespaces, without an app and without an owner.
    #[arg(long)]
    orphaned: bool,
    /// tree or tree=detailed: with the objects that they own; json or yaml.
    #[arg(long, short = 'o', value_parser = ["tree", "tree=detailed", "json", "yaml"])]
    output: Option<String>,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
    /// Fail if the app is not in this project.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client_of_all_kinds().await?;
    let (target, application) = args.app.read(context, &client).await?;
    if let Some(project) = &args.project
        && application.spec.project != *project
    {
        return Err(CommandError::new(format!(
            "application {} is in project {}, not in {project}",
            application.metadata.name, application.spec.project
        )));
    }
    if let Some(output) = &args.output {
        if args.watch {
            return Err(CommandError::refused_flag(
                "--watch",
                "it works only with the table; leave out --output",
            ));
        }
        if let Some(format) = Format::of_data(output) {
            let rows = rows(context, &client, &application, args).await;
            context.out.object(format, &rows.iter().map(|row| data(row)).collect())?;
            return Ok(ExitCode::Success);
        }
        if args.orphaned {
            return Err(CommandError::refused_flag(
                "--orphaned",
                "it works only with the table; leave out --output",
            ));
        }
        let client = cluster_of(context, &client, &application).await?;
        tree::show(context, &client, &application, output == "tree=detailed").await?;
        return Ok(ExitCode::Success);
    }
    if args.watch {
        let name = Some(format!("metadata.name={}", target.name));
        let selection = Selection { namespace: target.namespace.clone(), labels: None, fields: name };
        let watched = [(kinds::application(), selection)];
        let rows = async || {
            let application = read(context, &client, &target).await?;
            Ok(rows(context, &client, &application, args).await)
        };
        return watch::follow(context, &client, &watched, &HEADER, rows).await;
    }
    context.out.table(&HEADER, &rows(context, &client, &application, args).await);
    Ok(ExitCode::Success)
}

/// A row of the table, with names.
fn data(row: &[String]) -> Value {
    let text = |index: usize| row.get(index).cloned().unwrap_or_default();
    json!({"group": text(0), "kind": text(1), "namespace": text(2), "name": text(3), "orphaned": text(4) == "Yes"})
}

const HEADER: [&str; 5] = ["GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED"];

async fn rows(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    args: &Args,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if !args.orphaned {
        for resource in application.status.resources.iter().filter(|resource| !resource.hook) {
            let texts = [&resource.group, &resource.kind, &resource.namespace, &resource.name];
            rows.push(texts.into_iter().cloned().chain(["No".to_owned()]).collect());
        }
    }
    for orphan in orphans(context, client, application, args.orphaned).await {
        let texts = [
            orphan.group(),
            orphan.kind(),
            orphan.namespace().unwrap_or_default(),
            orphan.name().unwrap_or_default(),
            "Yes",
        ];
        rows.push(texts.map(str::to_owned).into());
    }
    rows
}

/// The orphaned objects in the app's namespaces, if the project monitors them or the user asked for them.
async fn orphans(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    asked: bool,
) -> Vec<Manifest> {
    let project =
        client.get_at(&kinds::project(), Some(context.namespace()), &application.spec.project).await;
    let project = project.ok().flatten().and_then(|project| AppProject::from_json(project.value()).ok());
    let mut rules = project.map(|project| to_project_rules(&project).0).unwrap_or_default();
    if rules.orphaned_resources.is_none() {
        if !asked {
            return Vec::new();
        }
        rules.orphaned_resources = Some(OrphanPatterns::default());
    }
    let (project, _) = Project::compile(&rules);
    let there = match cluster_of(context, client, application).await {
        Ok(there) => there,
        Err(error) => {
            context.out.note(&format!("{error}\nnote: orphaned objects are not shown"));
            return Vec::new();
        }
    };
    let tree = Tree::read(&there, application).await;
    let managed: BTreeSet<_> = application
        .status
        .resources
        .iter()
        .map(|resource| (&*resource.group, &*resource.kind, &*resource.namespace, &*resource.name))
        .collect();
    let is_orphan = |object: &&Manifest| {
        let place = (
            object.group(),
            object.kind(),
            object.namespace().unwrap_or_default(),
            object.name().unwrap_or_default(),
        );
        let is_known = object.key().is_some_and(|key| {
            project.orphans().is_some_and(|rules| rules.ignores(&key)) || is_bookkeeping(&key)
        });
        owners(object).next().is_none()
            && !managed.contains(&place)
            && object.annotation(plumb_core::tracking::TRACKING_ANNOTATION).is_none()
            && !is_known
    };
    tree.objects().iter().filter(is_orphan).cloned().collect()
}

/// Objects of Argo CD and plumb are never orphans.
fn is_bookkeeping(key: &ObjectKey) -> bool {
    matches!(key.group.as_str(), "argoproj.io" | "plumb.dev")
        || key.kind == "PodMetrics"
        || (key.kind == "ConfigMap" && [PUSHES_CONFIG_MAP, STATE_CONFIG_MAP].contains(&key.name.as_str()))
}
