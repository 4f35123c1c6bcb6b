//! `plumb migrate check`

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_core::doctor::{AppFacts, Filter};
use plumb_core::migrate::{self, AppVerdict, Installation};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::settings::without_effect;
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{JudgeArgs, known};
use crate::kinds;
use crate::output::Format;
use crate::render_here::RenderArgs;

/// Show what moving from Argo CD to plumb changes, before anything is changed.
///
/// It names what does not work with plumb (plugins in sidecars, single sign-on, extensions, sources that plumb does not
/// read), the steps before plumb starts, settings without effect, and the sync status that each app would have. It only
/// reads, with your kubeconfig. docs/migrating-from-argo-cd.md has the whole way, and the way back.
///
/// Examples: `plumb migrate check`, `plumb migrate check --without-apps -o json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not judge the apps: quicker, and no repository is fetched.
    #[arg(long)]
    without_apps: bool,
    /// End with 1 if something does not work with plumb.
    #[arg(long)]
    exit_code: bool,
    /// Output format: wide, json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    render: RenderArgs,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let mut installation = read(context, &client).await?;
    if !args.without_apps && !installation.applications.is_empty() {
        let how = (&args.judge, &args.render);
        let known = known(context, how, None, &Filter::default(), Timestamp::now()).await?;
        installation.verdicts = verdicts(&installation.applications, &known.apps);
    }
    let report = migrate::check(&installation);
    match args.output {
        Format::Wide | Format::Name => context.out.print(migrate::text(&report).trim_end()),
        Format::Json | Format::Yaml => context.out.object(args.output, &migrate::data(&report))?,
    }
    Ok(if args.exit_code && report.is_blocked() { ExitCode::No } else { ExitCode::Success })
}

/// Everything of the installation. Only the Applications must be readable.
async fn read(context: &Context, client: &ClusterClient) -> Result<Installation, CommandError> {
    let everywhere = Selection::default();
    let here = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let mut found = Installation {
        applications: values(context.list(client, &kinds::application(), &here).await?),
        ..Installation::default()
    };
    let kind = |version: &str, kind: &str| GroupVersionKind::from_api_version(version, kind);
    let mut more =
        async |kind: &GroupVersionKind, selection: &Selection| match client.list(kind, selection).await {
            Ok(objects) => values(objects),
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => {
                found.unread.push(format!("{}: {error}", kinds::plural(&kind.kind)));
                Vec::new()
            }
        };
    let sets = more(&kind("argoproj.io/v1alpha1", "ApplicationSet"), &everywhere).await;
    let mut workloads = more(&kind("apps/v1", "Deployment"), &here).await;
    workloads.extend(more(&kind("apps/v1", "StatefulSet"), &here).await);
    let config_maps = more(&kinds::config_map(), &here).await;
    let data = |name: &str| config_maps.iter().find(|map| map["metadata"]["name"] == name).map(texts);
    found.application_sets = sets;
    found.workloads = workloads;
    found.config = data("argocd-cm").unwrap_or_default();
    found.notifications = data("argocd-notifications-cm");
    found.plugins = data("plumb-plugins").unwrap_or_default().into_keys().collect();
    let parameters = data("argocd-cmd-params-cm").unwrap_or_default();
    let problems = without_effect(&found.config, &parameters);
    found.without_effect = problems.into_iter().map(|problem| (problem.place, problem.reason)).collect();
    Ok(found)
}

fn values(objects: Vec<Manifest>) -> Vec<Value> {
    objects.into_iter().map(|object| object.value().clone()).collect()
}

fn texts(config_map: &Value) -> BTreeMap<String, String> {
    let data = config_map["data"].as_object().into_iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What each status says, and what plumb would write.
fn verdicts(applications: &[Value], judged: &[AppFacts]) -> Vec<AppVerdict> {
    let mut before = BTreeMap::new();
    for application in applications {
        let text =
            |place: &str| application.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
        let app = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        let status = text("/status/sync/status");
        before.insert(app, if status.is_empty() { "Unknown".to_owned() } else { status });
    }
    let verdict = |facts: &AppFacts| {
        let app = format!("{}/{}", facts.app.namespace, facts.app.name);
        let before = before.get(&app)?.clone();
        let classes: BTreeSet<&str> = facts
            .findings
            .iter()
            .filter(|finding| finding.counts)
            .map(|finding| finding.class.name())
            .collect();
        let (after, why) = match (&facts.problem, facts.is_judged, classes.is_empty()) {
            (Some(problem), false, _) => ("Unknown", problem.clone()),
            (None, false, _) => ("Unknown", "not judged".to_owned()),
            (_, true, false) => ("OutOfSync", classes.into_iter().collect::<Vec<_>>().join(", ")),
            (_, true, true) => ("Synced", explained(facts)),
        };
        Some(AppVerdict { app, before, after: after.to_owned(), why })
    };
    judged.iter().filter_map(verdict).collect()
}

/// How many differences mean nothing.
fn explained(facts: &AppFacts) -> String {
    match facts.findings.len() {
        0 => String::new(),
        n => format!("{n} explained"),
    }
}
