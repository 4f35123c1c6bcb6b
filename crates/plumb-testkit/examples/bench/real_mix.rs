//! Memory on a cluster like real ones: hundreds of CRDs with large schemas, most of which no app uses, and charts of all
//! sizes, some of which ship CRDs and dashboards.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use plumb_testkit::objects;
use plumb_testkit::wait::{self, Selection};
use serde_json::{Value, json};

use crate::Bench;
use crate::floor;
use crate::phases::{LIMIT, applications, create_namespaces};
use crate::workload::{FLEET, NAMESPACE, application};

/// Most memory, whatever happens. `docs/performance.md` has the figures.
const MOST_MIB: u64 = 200;
/// The chart of every tenth app ships this many CRDs.
const CRDS_PER_CHART: usize = 5;
const KIB: usize = 1024;
/// Most memory for a CRD that no app uses: a watch and a few names. Its schema has 170 KiB on average.
const KIB_PER_UNUSED_CRD: usize = 64;
/// Most that a second rendering of everything leaves behind.
const LEFT_BEHIND_MIB: u64 = 15;
/// After this time without work free memory was returned.
const REST: Duration = Duration::from_secs(15);

pub(crate) async fn run(bench: &Bench) -> Result<()> {
    let n_apps = bench.args.apps;
    create_namespaces(bench, &[NAMESPACE]).await?;
    let start = bench.meter.memory()?;
    let unused: Vec<Value> =
        (0..bench.args.unused_crds).map(|at| crd(&format!("unused{}", at / 10), at)).collect();
    floor::apply(bench, "", unused).await.context("create CRDs that no app uses")?;
    tokio::time::sleep(REST).await;
    let with_crds = bench.meter.memory()?;
    let files: Vec<(String, String)> = (0..n_apps).flat_map(chart).collect();
    bench.repo.commit(&files)?;
    create(bench).await?;
    settled(bench, "are Synced", |app| app["status"]["sync"]["status"] == "Synced").await?;
    let installed = bench.meter.memory()?;
    tokio::time::sleep(REST).await;
    let at_rest = bench.meter.memory()?;
    refresh_hard(bench).await?;
    let refreshed = bench.meter.memory()?;
    tokio::time::sleep(REST).await;
    let at_last = bench.meter.memory()?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| {n_apps} charts, {} CRDs that no app uses | resident | most so far |",
        bench.args.unused_crds
    )?;
    writeln!(out, "|---|---|---|")?;
    for (when, memory) in [
        ("start", start),
        ("CRDs created", with_crds),
        ("all apps synced", installed),
        ("at rest", at_rest),
        ("all rendered and compared again", refreshed),
        ("at rest again", at_last),
    ] {
        writeln!(out, "| {when} | {} MiB | {} MiB |", memory.resident_mib, memory.peak_mib)?;
    }
    ensure!(at_last.peak_mib <= MOST_MIB, "{} MiB at the peak, not {MOST_MIB} MiB", at_last.peak_mib);
    // The rest grows with what is tracked, not with what exists.
    let most = start.resident_mib + u64::try_from(bench.args.unused_crds * KIB_PER_UNUSED_CRD / KIB)? + 2;
    ensure!(
        with_crds.resident_mib <= most,
        "{} MiB with CRDs that no app uses, not {most} MiB",
        with_crds.resident_mib
    );
    let most = at_rest.resident_mib + LEFT_BEHIND_MIB;
    ensure!(at_last.resident_mib <= most, "{} MiB at rest again, not {most} MiB", at_last.resident_mib);
    Ok(())
}

async fn create(bench: &Bench) -> Result<()> {
    let api = applications(bench);
    stream::iter(0..bench.args.apps)
        .map(|app| {
            let application =
                application(FLEET, &format!("mix-{app}"), &bench.repo.url(), &format!("charts/{app}"));
            let api = api.clone();
            async move {
                let application: DynamicObject = serde_json::from_value(application)?;
                api.create(&PostParams::default(), &application)
                    .await
                    .map(drop)
                    .context("create an Application")
            }
        })
        .buffer_unordered(bench.args.concurrency)
        .try_collect()
        .await
}

async fn refresh_hard(bench: &Bench) -> Result<()> {
    let api = applications(bench);
    let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}});
    stream::iter(0..bench.args.apps)
        .map(|app| {
            let (api, patch) = (api.clone(), &patch);
            async move {
                let name = format!("mix-{app}");
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
            }
        })
        .buffer_unordered(bench.args.concurrency)
        .try_collect::<()>()
        .await?;
    settled(bench, "are refreshed", |app| {
        app["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null()
            && app["status"]["sync"]["status"] == "Synced"
    })
    .await
}

async fn settled(bench: &Bench, what: &str, is_there: impl Fn(&Value) -> bool) -> Result<()> {
    let labels = Selection::Labels(format!("bench={}", FLEET.label));
    let n_apps = bench.args.apps;
    wait::until(&applications(bench), &labels, LIMIT, what, |seen| {
        seen.len() == n_apps && seen.values().all(&is_there)
    })
    .await
    .map(drop)
}

/// The files of one app's chart.
fn chart(app: usize) -> Vec<(String, String)> {
    let mut files = vec![
        ("Chart.yaml".to_owned(), format!("apiVersion: v2\nname: mix-{app}\nversion: 1.0.0\n")),
        ("values.yaml".to_owned(), format!("text: {:?}\n", prose(app, 30 * KIB))),
        ("templates/web.yaml".to_owned(), objects::manifests(&ordinary(app))),
    ];
    match app % 10 {
        0 => {
            let group = format!("op{app}");
            let crds = (0..CRDS_PER_CHART).map(|at| crd(&group, at));
            files.extend(
                crds.enumerate().map(|(at, crd)| (format!("crds/{at}.yaml"), objects::manifests(&[crd]))),
            );
            let own: Vec<Value> = (0..CRDS_PER_CHART).map(|at| custom(&group, at)).collect();
            files.push(("templates/own.yaml".to_owned(), objects::manifests(&own)));
        }
        1 | 2 => {
            let dashboards: Vec<Value> = (0..12)
                .map(|at| {
                    let text = json!({"title": at, "panels": panels(at)}).to_string();
                    objects::config_map(&format!("dashboard-{app}-{at}"), &[("dashboard.json", &text)])
                })
                .collect();
            files.push(("templates/dashboards.yaml".to_owned(), objects::manifests(&dashboards)));
        }
        _ => {}
    }
    files.into_iter().map(|(name, content)| (format!("charts/{app}/{name}"), content)).collect()
}

/// What every chart has.
fn ordinary(app: usize) -> Vec<Value> {
    let name = format!("mix-{app}");
    let mut objects = vec![
        objects::service_account(&name),
        objects::service(&name, 80),
        objects::with(objects::deployment(&name, 0), "/metadata/name", json!(name)),
    ];
    let maps =
        (0..6).map(|at| objects::config_map(&format!("{name}-{at}"), &[("text", &prose(at, 4 * KIB))]));
    objects.extend(maps);
    objects
}

/// The panels of a dashboard, of some forty kilobytes.
fn panels(seed: usize) -> Vec<Value> {
    (0..40)
        .map(|at| {
            json!({"id": at, "type": "timeseries", "title": prose(seed + at, 40),
                "targets": [{"expr": format!("sum(rate(requests_total{{pod=~\"$pod\"}}[{at}m])) by (code)")}],
                "gridPos": {"h": 8, "w": 12, "x": 0, "y": at}, "description": prose(at, 500)})
        })
        .collect()
}

fn kind(at: usize) -> String {
    format!("Kind{at}")
}

/// A CRD with a schema of 50 to 400 kilobytes, most of it descriptions.
fn crd(group: &str, at: usize) -> Value {
    let size = [50, 80, 120, 200, 400][at % 5] * KIB;
    let mut sections = serde_json::Map::new();
    let mut n_bytes = 0;
    while n_bytes < size {
        let section = section(sections.len());
        n_bytes += section.to_string().len();
        sections.insert(format!("section{}", sections.len()), section);
    }
    sections.insert("enabled".to_owned(), json!({"type": "boolean"}));
    let spec = json!({"type": "object", "properties": sections});
    objects::crd(&format!("{group}.mix.plumb.dev"), &kind(at), &spec)
}

fn custom(group: &str, at: usize) -> Value {
    let spec = json!({"enabled": true, "section0": {"field0": {"name": "a", "replicas": 3}}});
    objects::custom(&format!("{group}.mix.plumb.dev"), &kind(at), &format!("own-{at}"), &spec)
}

/// A part of a schema, as operators that embed the types of Kubernetes have it.
fn section(seed: usize) -> Value {
    let text = |at: usize| json!({"type": "string", "description": prose(seed + at, 180)});
    let fields = (0..10).map(|at| {
        let field = json!({"type": "object", "description": prose(at, 200), "properties": {
            "name": text(at), "image": text(at + 1), "policy": text(at + 2),
            "replicas": {"type": "integer", "format": "int32", "description": prose(at, 120)},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": text(at + 3), "port": {"type": "integer"}, "enabled": {"type": "boolean", "default": true}}}},
        }});
        (format!("field{at}"), field)
    });
    json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()})
}

/// A text of this length that compresses as prose does.
fn prose(seed: usize, length: usize) -> String {
    const WORDS: [&str; 16] = [
        "the",
        "controller",
        "selects",
        "objects",
        "whose",
        "labels",
        "match",
        "this",
        "field",
        "and",
        "defaults",
        "to",
        "an",
        "empty",
        "value",
        "unless",
    ];
    let mut state = u64::try_from(seed).unwrap_or_default().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(length + 12);
    while text.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 60).unwrap_or_default();
        text.push_str(WORDS.get(at).copied().unwrap_or_default());
        text.push(' ');
    }
    text
}
