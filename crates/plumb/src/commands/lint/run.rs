//! The command line of `plumb lint`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_core::change::{AppState, RepositoryChange, between};
use plumb_core::desired::Origin;
use plumb_core::lint::{LintApp, LintFinding, LintRule, Severity, lint, of_merge, with_lines};
use plumb_core::schema::SchemaSet;

use super::format::LintFormat;
use super::targets::Targets;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::local::openapi;
use crate::render_here::RenderArgs;
use crate::repository::{
    Failure, LoadedRepository, RepositoryApp, RepositoryRenderer, RepositoryState, load,
};

/// Check a repository before it is merged, without a cluster.
///
/// Finds the Applications in the files of the repository, and those that its sets generate. Renders them, and says what
/// will look wrong or go wrong: fields that the API server does not know, values that differ without meaning, objects in
/// two apps, plain Secrets, waves that are never reached. A directory without Applications is one app. With --base it
/// also says what the merge deletes, restarts and cannot change.
///
/// Schemas come from the CRDs in the files and from --schemas. Without the schema of a kind, unknown fields are not found.
///
/// Exit code 0, unless --exit-code is given: then 1 if there is an error; with --exit-code=warning also for a warning,
/// with --exit-code=hint for any finding. 20: error.
///
/// Examples: `plumb lint`, `plumb lint deploy/shop --base main`, `plumb lint shop -o github --exit-code`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directories or files of a working copy, or names of apps in it [default: the current directory].
    #[arg(value_name = "DIRECTORY|APP")]
    targets: Vec<String>,
    /// Also compare with this revision: what a merge into it would change.
    #[arg(long, value_name = "REVISION")]
    base: Option<String>,
    /// `OpenAPI` document of the cluster, as `kubectl get --raw /openapi/v2` prints it.
    #[arg(long, value_name = "FILE")]
    schemas: Vec<PathBuf>,
    /// Working copy of another repository that apps use: `REPO_URL=PATH`.
    #[arg(long, value_name = "REPO_URL=PATH")]
    repo: Vec<String>,
    /// File with cluster Secrets, or a list of `{name, server, labels, annotations}`, for the generators of sets.
    #[arg(long, value_name = "FILE")]
    clusters: Option<String>,
    /// Only these rules, such as `PlainSecret`.
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: Vec<LintRule>,
    /// Without these rules.
    #[arg(long, value_name = "RULE", value_parser = rule)]
    skip: Vec<LintRule>,
    /// Kubernetes version, for charts.
    #[arg(long, default_value = "1.36.0")]
    kube_version: String,
    /// End with 1 if there is a finding of this severity, or a worse one [default without a value: error].
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "error", value_name = "SEVERITY")]
    exit_code: Option<Level>,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = LintFormat::Text)]
    output: LintFormat,
    #[command(flatten)]
    render: RenderArgs,
}

/// The severities, for the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// Errors.
    Error,
    /// Errors and warnings.
    Warning,
    /// Everything.
    Hint,
}

fn rule(name: &str) -> Result<LintRule, String> {
    let known = || LintRule::ALL.map(LintRule::name).join(", ");
    LintRule::from_name(name).ok_or_else(|| format!("no such rule; known are {}", known()))
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let (root, targets) = Targets::read(&args.targets)?;
    let renderer = RepositoryRenderer::new(&args.render, &args.repo, &args.kube_version)?
        .with_clusters(args.clusters.as_deref())?;
    let schemas = openapi(&args.schemas)?;
    let state = RepositoryState::on_disk(&root)?;
    let loaded = load(&renderer, &state, context.namespace(), &targets.directories, true).await;
    targets.refuse_unknown(&state, &loaded.apps)?;
    let schemas = schemas.with_crds(&loaded.crds);
    note_missing(context, &schemas, &loaded);
    let mut findings = checked(&loaded, &targets, &schemas);
    let change = match &args.base {
        Some(base) => {
            let base = RepositoryState::at(&root, base)?;
            let base = load(&renderer, &base, context.namespace(), &targets.directories, false).await;
            Some(merge(&base, &loaded, &targets, &schemas))
        }
        None => None,
    };
    findings.extend(change.iter().flat_map(of_merge));
    findings.retain(|finding| {
        (args.rule.is_empty() || args.rule.contains(&finding.rule)) && !args.skip.contains(&finding.rule)
    });
    let findings = with_lines(findings, |app, origin| read(&root, &loaded, app, origin));
    let apps: Vec<&str> = loaded
        .apps
        .iter()
        .filter(|app| targets.has(app) && !is_elsewhere(app))
        .map(|app| app.name.as_str())
        .collect();
    args.output.print(context, &findings, &apps, change.as_ref())?;
    let worst = findings.iter().map(|finding| finding.severity).min();
    let fails = match (args.exit_code, worst) {
        (Some(Level::Error), Some(worst)) => worst <= Severity::Error,
        (Some(Level::Warning), Some(worst)) => worst <= Severity::Warning,
        (Some(Level::Hint), Some(_)) => true,
        (_, None) | (None, _) => false,
    };
    Ok(if fails { ExitCode::No } else { ExitCode::Success })
}

/// The findings of the rules.
fn checked(loaded: &LoadedRepository, targets: &Targets, schemas: &SchemaSet) -> Vec<LintFinding> {
    let apps: Vec<LintApp<'_>> = loaded
        .apps
        .iter()
        .map(|app| LintApp {
            name: &app.name,
            destination: &app.destination,
            desired: &app.desired,
            second: app.second.as_ref(),
            creates: app.creates.as_ref(),
            is_checked: targets.has(app),
        })
        .collect();
    let mut findings = lint(&apps, schemas);
    for app in loaded.apps.iter().filter(|app| targets.has(app)) {
        if let Some(Failure::Broken(why)) = &app.failure {
            let mut finding = LintFinding::not_rendered(&app.name, why);
            finding.origin = Some(Origin { source: 0, file: app.file.clone(), line: 1, verbatim: false });
            findings.push(finding);
        }
    }
    findings
}

/// What a merge into the base would do to the checked apps.
fn merge(
    base: &LoadedRepository,
    head: &LoadedRepository,
    targets: &Targets,
    schemas: &SchemaSet,
) -> RepositoryChange {
    let states = |loaded: &LoadedRepository| -> Vec<AppState> {
        loaded.apps.iter().map(RepositoryApp::state).collect()
    };
    let mut change = between(&states(base), &states(head), schemas);
    let is_checked = |name: &String| {
        let mut apps = head.apps.iter().chain(&base.apps);
        apps.any(|app| app.name == *name && targets.has(app))
    };
    change.objects.retain(|object| is_checked(&object.app));
    change.apps_added.retain(is_checked);
    change.apps_removed.retain(is_checked);
    change.unknown.retain(is_checked);
    change
}

/// Is what it needs not here? Then nothing of it was checked.
fn is_elsewhere(app: &RepositoryApp) -> bool {
    matches!(app.failure, Some(Failure::Elsewhere(_) | Failure::NeedsCluster(_)))
}

/// Says what was not checked.
fn note_missing(context: &Context, schemas: &SchemaSet, loaded: &LoadedRepository) {
    if !loaded.lack_clusters.is_empty() {
        context.out.note(&format!(
            "note: no clusters are known but in-cluster, for the generators of {}\n\
             hint: --clusters FILE names them",
            loaded.lack_clusters.join(", ")
        ));
    }
    loaded.note_twins(context);
    for app in &loaded.apps {
        if let Some(Failure::NeedsCluster(what)) = &app.failure {
            context.out.note(&format!(
                "note: {} is not checked: {what} cannot be asked without a cluster\n\
                 hint: `plumb appset get` shows what it generated",
                app.name
            ));
        }
        if let Some(Failure::Elsewhere(url)) = &app.failure {
            let url = plumb_core::project::shown_repo_url(url);
            context.out.note(&format!(
                "note: {} is not checked: its source {url} is not in this repository\n\
                 hint: --repo {url}=PATH names a working copy",
                app.name
            ));
        }
    }
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for object in loaded.apps.iter().flat_map(|app| app.desired.objects.values()) {
        let gvk = object.manifest.gvk();
        if schemas.kind(&gvk).is_none() {
            *missing.entry(format!("{} {}", gvk.api_version(), gvk.kind)).or_default() += 1;
        }
    }
    if !missing.is_empty() {
        let kinds: Vec<String> = missing.into_keys().collect();
        context.out.note(&format!(
            "note: no schema of {}: unknown fields and defaults of them are not found\n\
             hint: `kubectl get --raw /openapi/v2 > openapi.json`, then --schemas openapi.json",
            kinds.join(", ")
        ));
    }
}

/// The text of a file of an app's first source. A file of another repository is not read.
fn read(root: &Path, loaded: &LoadedRepository, app: &str, origin: &Origin) -> Option<Vec<u8>> {
    let is_own = loaded.apps.iter().any(|other| other.name == app && other.failure.is_none());
    let path = root.join(&origin.file).canonicalize().ok().filter(|_| is_own)?;
    // A link may lead out of the repository.
    if !path.starts_with(root) {
        return None;
    }
    std::fs::read(path).ok()
}
