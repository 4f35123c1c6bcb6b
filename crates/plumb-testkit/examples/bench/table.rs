//! The figures for people, as Markdown.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;

use crate::cost::Cost;
use crate::phases::Figures;

pub(crate) fn print(figures: &Figures, n_apps: usize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| phase | floor | floor, rolled out | plumb | ratio | CPU | requests per app |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    let phases = [
        (format!("install {n_apps} apps"), Some(figures.install_floor), &figures.install),
        (format!("idle, {:.0} s", figures.idle.took.as_secs_f64()), None, &figures.idle),
        (format!("upgrade {n_apps} apps"), Some(figures.upgrade_floor), &figures.upgrade),
    ];
    for (name, floor, cost) in phases {
        let took = floor.map_or_else(String::new, |_| seconds(cost.took));
        let ratio = floor.map_or_else(String::new, |floor| {
            format!("{:.1}", cost.took.as_secs_f64() / floor.written.as_secs_f64())
        });
        let rolled_out = floor.map(|floor| seconds(floor.rolled_out)).unwrap_or_default();
        let floor = floor.map(|floor| seconds(floor.written)).unwrap_or_default();
        writeln!(
            out,
            "| {name} | {floor} | {rolled_out} | {took} | {ratio} | {} | {:.1} |",
            seconds(cost.cpu),
            per(cost, n_apps)
        )?;
    }
    let n_heals = figures.heals.len();
    let at =
        |part: usize| figures.heals.get(part.min(n_heals.saturating_sub(1))).copied().unwrap_or_default();
    writeln!(
        out,
        "| self-heal, {n_heals} edits | | | p50 {} ms, p95 {} ms, worst {} ms | | {} | {:.1} per edit |",
        at(n_heals / 2).as_millis(),
        at(n_heals * 95 / 100).as_millis(),
        at(n_heals).as_millis(),
        seconds(figures.heal.cpu),
        per(&figures.heal, n_heals),
    )?;
    let waves = &figures.waves;
    writeln!(
        out,
        "| ten waves of ten objects | | | {} | | {} | {} |",
        seconds(waves.took),
        seconds(waves.cpu),
        waves.n_requests
    )?;
    writeln!(out, "\nMost memory: {} MiB.", waves.peak_mib)?;
    let changed = figures.upgrade_floor_of_changed;
    writeln!(
        out,
        "Floor of the upgrade, changed objects alone: {} ({:.1} times as long is what plumb takes), {} rolled out.",
        seconds(changed.written),
        figures.upgrade.took.as_secs_f64() / changed.written.as_secs_f64(),
        seconds(changed.rolled_out)
    )?;
    writeln!(
        out,
        "The least of the upgrade, whatever engine does it (looks asked for, changes applied and rolled out, a status each): {}; plumb \
         takes {:.1} times as long, and {:.1} times the floor is the least.",
        seconds(figures.upgrade_least),
        figures.upgrade.took.as_secs_f64() / figures.upgrade_least.as_secs_f64(),
        figures.upgrade_least.as_secs_f64() / figures.upgrade_floor.written.as_secs_f64(),
    )?;
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
fn per(cost: &Cost, count: usize) -> f64 {
    cost.n_requests as f64 / count.max(1) as f64
}
