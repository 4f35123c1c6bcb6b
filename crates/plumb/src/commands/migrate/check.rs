//! `plumb migrate check`

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_core::doctor::{AppFacts, Filter};
use plumb_core::migrate::{self, AppVerdict, Installation, Registration};
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::project::shown_repo_url;
use plumb_crd::settings::{SecretData, without_effect};
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{JudgeArgs, known};
use crate::kinds;
use crate::output::Format;
use crate::render_here::RenderArgs;
use crate::secrets;
use crate::select::namespaces::list_in;

/// Show what moving from Argo CD to plumb changes, before anything is changed.
///
/// It names what does not work with plumb (plugins in sidecars, Argo CD's own Dex, extensions, sources and credentials that
/// plumb cannot use), the steps before plumb starts, settings without effect, and the sync status that each app would have.
/// It only reads, with your kubeconfig; of Secrets it uses the names of the keys. docs/migrating-from-argo-cd.md has the whole way, and the way back.
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

/// Keys of repositories that ask for something that plumb may not have.
const REPOSITORY_KEYS: [&str; 4] =
    ["enableLfs", "gcpServiceAccountKey", "githubAppPrivateKey", "useAzureWorkloadIdentity"];

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
    let applications = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        context.list(client, &kinds::application(), &selection).await
    };
    let mut found = Installation {
        applications: values(list_in(context, client, None, applications).await?),
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
    let mut registered = Vec::new();
    for secret_type in ["cluster", "repository", "repo-creds"] {
        let secrets = more(&kinds::secret(), &secrets::write::selection(context, secret_type)).await;
        registered.extend(secrets.iter().filter_map(|secret| registration(secret_type, secret)));
    }
    found.registrations = registered;
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

/// What a Secret registers, and which of its keys have a value. The values stay here.
fn registration(secret_type: &str, secret: &Value) -> Option<Registration> {
    let (secret, _) = SecretData::read(secret).ok()?;
    let text = |key: &str| secret.get(key).map(|text| text.expose().trim());
    let is_cluster = secret_type == "cluster";
    let address = text(if is_cluster { "server" } else { "url" })?;
    let kind = if secret_type == "repo-creds" { "credentials for" } else { secret_type };
    let of = format!("{kind} {}", shown_repo_url(address));
    let mut keys = BTreeSet::new();
    if is_cluster {
        let config: Value = serde_json::from_str(secret.get("config")?.expose()).ok()?;
        let is_set = |value: &Value| !value.is_null() && value != "" && value != false;
        let set = config.as_object().into_iter().flatten().filter(|(_, value)| is_set(value));
        keys.extend(set.map(|(key, _)| key.clone()));
    } else {
        let is_oci = address.starts_with("oci://") || text("type") == Some("oci");
        let has = |key: &&str| text(key).is_some_and(|text| !matches!(text, "" | "false"));
        keys.extend(
            REPOSITORY_KEYS.into_iter().filter(has).chain(is_oci.then_some("oci")).map(str::to_owned),
        );
    }
    Some(Registration { of, keys })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::base64::encode;
    use serde_json::json;

    #[test]
    fn of_a_secret_only_the_address_and_the_names_of_keys_are_kept() {
        let read = |secret_type: &str, data: &[(&str, &str)]| {
            let data: BTreeMap<_, _> =
                data.iter().map(|(key, value)| (*key, encode(value.as_bytes()))).collect();
            let registration = registration(secret_type, &json!({"metadata": {"name": "x"}, "data": data}));
            let registration = registration.unwrap_or_default();
            let keys: Vec<_> = registration.keys.into_iter().collect();
            format!("{}: {}", registration.of, keys.join(" "))
        };
        let config = r#"{"proxyUrl": "http://u:canary@p", "awsAuthConfig": null, "bearerToken": "canary"}"#;
        for (secret_type, data, expected) in [
            (
                "cluster",
                &[("server", "https://a"), ("config", config)][..],
                "cluster https://a: bearerToken proxyUrl",
            ),
            (
                "repository",
                &[
                    ("url", "https://u:canary@h/a"),
                    ("enableLfs", "true"),
                    ("useAzureWorkloadIdentity", "false"),
                ],
                "repository https://h/a: enableLfs",
            ),
            (
                "repo-creds",
                &[("url", "https://h"), ("githubAppPrivateKey", "canary")],
                "credentials for https://h: githubAppPrivateKey",
            ),
            (
                "repository",
                &[("url", "registry.example.com/a"), ("type", "oci")],
                "repository registry.example.com/a: oci",
            ),
        ] {
            assert_eq!(read(secret_type, data), expected);
        }
    }
}
