//! What hostile apps cost the honest ones: install and heal without them, then the same beside them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, ListParams};
use plumb_testkit::wait::{self, Selection};

use crate::Bench;
use crate::cost::Cost;
use crate::hostile_apps::{self, HostileApps};
use crate::phases::{LIMIT, applications, create_namespaces, heal, install};
use crate::workload::{FLEET, Fleet, NAMESPACE};

/// Installed first and not measured: the first apps of a fresh cluster take longer than those after them.
const WARM_UP: Fleet = Fleet { namespace: "bench-warm-up", prefix: "warm-up", label: "0" };
/// The honest apps that live beside hostile ones.
const BESIDE: Fleet = Fleet { namespace: "bench-beside", prefix: "beside", label: "2" };

/// How much longer honest apps may take, and how much memory plumb may use, in MiB.
const MOST_TIMES: f64 = 1.5;
const MOST_MIB: u64 = 400;

/// How long the hostile apps have to unfold before the honest ones come.
const HEAD_START: Duration = Duration::from_secs(10);

/// What was measured of one fleet.
struct Measured {
    install: Cost,
    heal: Cost,
    heals: Vec<Duration>,
}

pub(crate) async fn run(bench: &Bench, n_hostile: usize) -> Result<()> {
    let namespaces = [WARM_UP.namespace, NAMESPACE, BESIDE.namespace, hostile_apps::NAMESPACE];
    create_namespaces(bench, &namespaces).await?;
    let started = bench.meter.started()?;
    install(bench, WARM_UP).await?;
    remove(bench, WARM_UP).await?;
    let alone = measure(bench, FLEET).await?;
    remove(bench, FLEET).await?;
    let hostile = HostileApps::create(bench, n_hostile).await?;
    tokio::time::sleep(HEAD_START).await;
    let beside = measure(bench, BESIDE).await?;
    let is_same = bench.meter.started().is_ok_and(|now| now == started);
    print_conditions(&hostile.conditions().await?)?;
    drop(hostile);
    print(&alone, &beside, n_hostile, is_same)
}

async fn measure(bench: &Bench, fleet: Fleet) -> Result<Measured> {
    let install = install(bench, fleet).await?;
    let (heal, heals) = heal(bench, fleet).await?;
    Ok(Measured { install, heal, heals })
}

/// Removes the Applications; without a finalizer their objects stay.
async fn remove(bench: &Bench, fleet: Fleet) -> Result<()> {
    let api = applications(bench);
    let labels = format!("bench={}", fleet.label);
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels(&labels)).await?;
    wait::until(&api, &Selection::Labels(labels), LIMIT, "are gone", std::collections::BTreeMap::is_empty)
        .await?;
    Ok(())
}

/// Shows that the hostile apps did their work, and what it cost them.
fn print_conditions(conditions: &BTreeMap<&'static str, (usize, String)>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| hostile apps | with a condition | the first one |")?;
    writeln!(out, "|---|---|---|")?;
    for (kind, (n_apps, message)) in conditions {
        let message: String = message.lines().next().unwrap_or_default().chars().take(120).collect();
        writeln!(out, "| {kind} | {n_apps} | {message} |")?;
    }
    writeln!(out)?;
    Ok(())
}

fn print(alone: &Measured, beside: &Measured, n_hostile: usize, is_same: bool) -> Result<()> {
    let median = |heals: &[Duration]| heals.get(heals.len() / 2).copied().unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "| honest apps | alone | beside {n_hostile} hostile apps | ratio | goal |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut missed = Vec::new();
    for (name, alone, beside) in [
        ("install", alone.install.took, beside.install.took),
        ("heal, p50", median(&alone.heals), median(&beside.heals)),
    ] {
        let ratio = beside.as_secs_f64() / alone.as_secs_f64().max(0.001);
        let (alone, beside) = (alone.as_millis(), beside.as_millis());
        writeln!(out, "| {name} | {alone} ms | {beside} ms | {ratio:.2} | {MOST_TIMES} |")?;
        if ratio > MOST_TIMES {
            missed.push(name);
        }
    }
    let peak = beside.heal.peak_mib;
    writeln!(out, "| most memory | {} MiB | {peak} MiB | | {MOST_MIB} MiB |", alone.heal.peak_mib)?;
    writeln!(out, "| restarted | | {} | | no |", if is_same { "no" } else { "yes" })?;
    if peak > MOST_MIB {
        missed.push("memory");
    }
    if !is_same {
        missed.push("restart");
    }
    ensure!(missed.is_empty(), "goals that were missed: {}", missed.join(", "));
    Ok(())
}
