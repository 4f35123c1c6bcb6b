//! `plumb diff`

use std::path::PathBuf;

use plumb_core::change::{self, AppState, between};
use plumb_core::schema::{SchemaSet, SensitiveField};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::openapi;
use crate::output::Format;
use crate::render_here::{RenderArgs, checkout};
use crate::repository::{LoadedRepository, RepositoryApp, RepositoryRenderer, RepositoryState, load};

/// Show what a change of Git does to the objects of all apps of a repository, without a cluster.
///
/// Renders the Applications in the files at both revisions: objects that are added, changed or deleted, data that is
/// lost, pods that restart, fields that the API server refuses to change. Values of Secrets are not shown.
///
/// Exit code 0, unless --exit-code is given: then 1 if an object changes. 20: error.
///
/// Examples: `plumb diff --from main`, `plumb diff --from v1.2 --to v1.3 -o markdown`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the working copy; without Applications in its files, the directory is the app.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
    /// The old revision: a branch, a tag or a commit.
    #[arg(long, value_name = "REVISION")]
    from: String,
    /// The new revision [default: the files on disk].
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,
    /// `OpenAPI` document of the cluster, as `kubectl get --raw /openapi/v2` prints it. With it, lists are compared by
    /// their keys, and two spellings of one value are equal.
    #[arg(long, value_name = "FILE")]
    schemas: Vec<PathBuf>,
    /// Working copy of another repository that apps use: `REPO_URL=PATH`.
    #[arg(long, value_name = "REPO_URL=PATH")]
    repo: Vec<String>,
    /// File with cluster Secrets, or a list of `{name, server, labels, annotations}`, for the generators of sets.
    #[arg(long, value_name = "FILE")]
    clusters: Option<String>,
    /// Kubernetes version, for charts.
    #[arg(long, default_value = "1.36.0")]
    kube_version: String,
    /// End with 1 if an object changes.
    #[arg(long)]
    exit_code: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = DiffFormat::Text)]
    output: DiffFormat,
    #[command(flatten)]
    render: RenderArgs,
}

/// The formats of `plumb diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DiffFormat {
    /// One line per object and per field.
    Text,
    /// JSON, with everything.
    Json,
    /// YAML, with everything.
    Yaml,
    /// Markdown, for a merge request.
    Markdown,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let (root, inside) = checkout(&args.directory, None)?;
    let renderer = RepositoryRenderer::new(&args.render, &args.repo, &args.kube_version)?
        .with_clusters(args.clusters.as_deref())?;
    let schemas = openapi(&args.schemas)?;
    let old = RepositoryState::at(&root, &args.from)?;
    let new = match &args.to {
        Some(revision) => RepositoryState::at(&root, revision)?,
        None => RepositoryState::on_disk(&root)?,
    };
    let directories = [inside];
    let old = load(&renderer, &old, context.namespace(), &directories, false).await;
    // Rendered twice: what differs in each render is no change.
    let new = load(&renderer, &new, context.namespace(), &directories, true).await;
    new.note_twins(context);
    let schemas: SchemaSet = schemas.with_crds(&old.crds).with_crds(&new.crds);
    let schemas = schemas.with_sensitive_fields(SensitiveField::built_in().into());
    let states = |loaded: &LoadedRepository| -> Vec<AppState> {
        loaded.apps.iter().map(RepositoryApp::state).collect()
    };
    let changed = between(&states(&old), &states(&new), &schemas);
    let subject = "this change";
    match args.output {
        DiffFormat::Text => context.out.print(&change::text(&changed, subject)),
        DiffFormat::Json => context.out.object(Format::Json, &change::data(&changed))?,
        DiffFormat::Yaml => context.out.object(Format::Yaml, &change::data(&changed))?,
        DiffFormat::Markdown => context.out.print_data(&change::markdown(&changed, subject)),
    }
    Ok(if args.exit_code && !changed.objects.is_empty() { ExitCode::No } else { ExitCode::Success })
}
