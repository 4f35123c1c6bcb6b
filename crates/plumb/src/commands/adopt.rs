//! `plumb adopt`

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::doctor::Filter;
use plumb_core::drift::{DriftClass, Finding};
use plumb_core::object::ObjectKey;
use plumb_core::text::one_line;
use plumb_core::tracking::{Adoption, TrackingSettings, adoption, is_crd};
use plumb_crd::drift_report::DriftFinding;
use plumb_crd::settings::TRACKING_METHOD;
use plumb_crd::{Application, Wire, to_app};
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::{Value, json};

use crate::context::{Context, change};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{JudgeArgs, Known, engine_runs, known};
use crate::kinds;
use crate::local::settings_of;
use crate::output::Format;
use crate::prompt::confirm;
use crate::render_here::RenderArgs;
use crate::select::app;

/// Mark existing objects as an app's own: objects that Git asks for, that exist, and that no app tracks.
///
/// Shows what would be adopted, and where it differs from Git. Then each object gets the app's tracking mark and no
/// other change: its content stays until the next sync. A CRD carries no mark, and is noted as adopted. An object that
/// another app owns is refused.
///
/// Examples: `plumb adopt --all --dry-run`, `plumb adopt --app shop`, `plumb adopt --all --yes`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Adopt for these apps: `name`, or `namespace/name`.
    #[arg(long, value_name = "APP", add = crate::complete::apps())]
    app: Vec<String>,
    /// Adopt for all apps.
    #[arg(long, conflicts_with = "app")]
    all: bool,
    /// Only show what would be adopted.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Output format of a dry run: wide, json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide, requires = "dry_run")]
    output: Format,
    /// Namespace of the Applications [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    render: RenderArgs,
}

/// The objects of so many apps tell how objects are marked.
const MOST_APPS: usize = 20;

/// An object to adopt.
struct Candidate {
    app: AppId,
    target: Target,
    key: ObjectKey,
    patch: Value,
    finding: Finding,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.app.is_empty() && !args.all {
        return Err(CommandError::usage("no app is named")
            .hint("name apps with --app, or use --all; --dry-run only shows what would be adopted"));
    }
    let filter = Filter { apps: args.app.clone(), ..Filter::default() };
    let how = (&args.judge, &args.render);
    let known = known(context, how, args.app_namespace.as_deref(), &filter, Timestamp::now()).await?;
    for name in &args.app {
        let alone = Filter { apps: vec![name.clone()], ..Filter::default() };
        if !known.apps.iter().any(|app| alone.has_app(app)) {
            return Err(
                CommandError::new(format!("no app is named {name}")).hint("`plumb app list` shows the apps")
            );
        }
    }
    let client = context.client_of_all_kinds().await?;
    let (candidates, n_refused) = candidates(context, &client, &known, &filter).await?;
    if matches!(args.output, Format::Json | Format::Yaml) {
        context.out.object(args.output, &candidates.iter().map(data).collect())?;
        return Ok(if n_refused > 0 { ExitCode::No } else { ExitCode::Success });
    }
    if candidates.is_empty() {
        context.out.note("nothing to adopt");
        return Ok(if n_refused > 0 { ExitCode::No } else { ExitCode::Success });
    }
    for candidate in &candidates {
        context.out.print(&described(context, candidate));
    }
    if args.dry_run {
        context.out.note(&format!("{} would be adopted; nothing was changed", objects(candidates.len())));
        return Ok(ExitCode::Success);
    }
    if !args.yes && !confirm(&format!("adopt {}?", objects(candidates.len())))? {
        context.out.note("nothing was changed");
        return Ok(ExitCode::Success);
    }
    let mut n_failed = 0;
    for candidate in &candidates {
        // The patch names the version of the object that was shown: whoever was faster wins.
        match change(&client, &candidate.target, &Patch::Merge(candidate.patch.clone())).await {
            Ok(_) => context.out.print(&format!("adopted {} for {}", candidate.key, candidate.app)),
            Err(error) => {
                n_failed += 1;
                context.out.note(&error.to_string());
            }
        }
    }
    if n_failed + n_refused > 0 {
        context.out.note(&format!("{} not adopted", objects(n_failed + n_refused)));
        return Ok(ExitCode::No);
    }
    Ok(ExitCode::Success)
}

fn objects(n_objects: usize) -> String {
    if n_objects == 1 { "1 object".to_owned() } else { format!("{n_objects} objects") }
}

/// The objects that can be adopted, as they are now, and how many cannot.
async fn candidates(
    context: &Context,
    client: &ClusterClient,
    known: &Known,
    filter: &Filter,
) -> Result<(Vec<Candidate>, usize), CommandError> {
    let has_engine = engine_runs(context, client).await;
    let settings = tracking(context, client, known, has_engine).await?;
    let instances: BTreeSet<String> =
        known.apps.iter().map(|app| app.app.instance_name(context.namespace())).collect();
    let (mut found, mut n_refused) = (Vec::new(), 0);
    for facts in known.apps.iter().filter(|facts| filter.has_app(facts)) {
        let unadopted: Vec<&Finding> =
            facts.findings.iter().filter(|finding| finding.class == DriftClass::Unadopted).collect();
        if unadopted.is_empty() {
            continue;
        }
        let application =
            app::read(context, client, &app::target(context, &facts.app.to_string(), None)).await?;
        let namespace = to_app(&application).ok().and_then(|app| app.destination.namespace);
        let instance = facts.app.instance_name(context.namespace());
        // One object can have several findings.
        let by_key: BTreeMap<&ObjectKey, &Finding> =
            unadopted.iter().rev().map(|finding| (&finding.key, *finding)).collect();
        for (key, finding) in by_key {
            let refuse =
                |why: &str| context.out.note(&format!("not adopted: {key} for {}: {why}", facts.app));
            let live =
                client.get(key).await.map_err(|error| CommandError::api(format!("read {key}"), error))?;
            let Some((live, target)) = live.and_then(|live| Target::of(&live).map(|target| (live, target)))
            else {
                refuse("it is gone");
                continue;
            };
            if !has_engine && is_crd(&live) {
                // No sync of Argo CD reads a mark there, and only plumb's engine reads `plumb.dev/adopted-by`.
                refuse(&of_argo_cd(finding));
                continue;
            }
            let is_app = |name: &str| instances.contains(name);
            match adoption(&live, &instance, namespace.as_deref(), &settings, is_app) {
                Adoption::Mark(patch) => found.push(Candidate {
                    app: facts.app.clone(),
                    target,
                    key: key.clone(),
                    patch,
                    finding: finding.clone(),
                }),
                Adoption::Done => refuse("it is the app's own already"),
                Adoption::OwnedBy(other) => {
                    refuse(&format!("app {other} owns it; remove it from the Git of one of the apps"));
                    n_refused += 1;
                }
            }
        }
    }
    Ok((found, n_refused))
}

/// What the verdict of Argo CD about a CRD needs. It marks none.
fn of_argo_cd(finding: &Finding) -> String {
    let fields: Vec<String> =
        finding.fields.iter().filter(|field| !field.segments().is_empty()).map(ToString::to_string).collect();
    let differs = if fields.is_empty() {
        "its content matches Git".to_owned()
    } else {
        format!("it differs from Git in {}", fields.join(", "))
    };
    format!("Argo CD marks no CRDs, and a sync of the app adopts it; {differs}")
}

/// How this control plane marks objects. Where no setting says it, the marks of other objects tell.
async fn tracking(
    context: &Context,
    client: &ClusterClient,
    known: &Known,
    has_engine: bool,
) -> Result<TrackingSettings, CommandError> {
    let map = client.get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cm").await;
    // With a guess, objects would get a mark that nobody reads.
    let map = map.map_err(|error| CommandError::api("read the settings in argocd-cm", error))?;
    let mut tracking = settings_of(map.as_ref()).tracking;
    let is_named = map.is_some_and(|map| !map.value()["data"][TRACKING_METHOD].is_null());
    if has_engine || is_named {
        return Ok(tracking);
    }
    let mut applications = Vec::new();
    for app in known.apps.iter().take(MOST_APPS) {
        let application =
            app::read(context, client, &app::target(context, &app.app.to_string(), None)).await?;
        applications.push(application);
    }
    let names = (context.namespace(), tracking.label_key.as_str());
    let applications: Vec<&Application> = applications.iter().collect();
    tracking.method = plumb_engine::method_in_use(client, names, &applications).await;
    Ok(tracking)
}

/// The same for programs: the finding as a `DriftReport` has it.
fn data(candidate: &Candidate) -> Value {
    let app = &candidate.app;
    json!({
        "application": {"namespace": app.namespace, "name": app.name},
        "finding": DriftFinding::of(&candidate.finding).write(),
    })
}

/// The object, and where it differs from Git.
fn described(context: &Context, candidate: &Candidate) -> String {
    let app = &candidate.app;
    let name = if app.namespace == context.namespace() { app.name.clone() } else { app.to_string() };
    let fields: Vec<String> = candidate
        .finding
        .fields
        .iter()
        .filter(|field| !field.segments().is_empty())
        .map(ToString::to_string)
        .collect();
    let differs = if fields.is_empty() {
        "its content matches Git".to_owned()
    } else {
        format!("it differs from Git in {}; the next sync applies Git's content", fields.join(", "))
    };
    one_line(&format!("{name}: {}: {differs}", candidate.key)).into_owned()
}
