//! The output on a terminal, and without one.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use plumb_testkit::objects;
use serde_json::json;

use crate::bench::Bench;

const REDRAWN: &str = "\u{1b}[J";
const GREEN: &str = "\u{1b}[32m";

/// Runs a command line on a terminal of this width. Returns its output and exit code; `None` on a machine without
/// `script`, which creates terminals.
fn on_terminal(
    bench: &Bench,
    line: &str,
    width: usize,
    variables: &[(&str, &str)],
) -> Result<Option<(String, i32)>> {
    let bare = bench.command(line)?;
    let mut words = vec![bare.get_program().to_string_lossy().into_owned()];
    words.extend(bare.get_args().map(|word| word.to_string_lossy().into_owned()));
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let inner = format!("stty rows 30 cols {width}; exec {}", quoted.join(" "));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]).env_clear();
    for (name, value) in bare.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").envs(variables.iter().copied());
    let Ok(output) = command.stdin(std::process::Stdio::null()).output() else {
        plumb_testkit::skipped("SCRIPT", "there is no script")?;
        return Ok(None);
    };
    let code = output.status.code().context("a signal ended it")?;
    Ok(Some((String::from_utf8(output.stdout)?, code)))
}

#[tokio::test]
async fn a_sync_is_redrawn_on_a_terminal_and_printed_line_by_line_elsewhere() -> Result<()> {
    let bench = Bench::with_engine().await?;
    let mut migrate = objects::job("migrate");
    migrate["metadata"]["annotations"] = json!({"argocd.argoproj.io/hook": "PreSync"});
    let mut web = objects::deployment("web", 1);
    web["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": "1"});
    bench.repo.commit(&[(
        "app/all.yaml",
        objects::manifests(&[migrate, objects::config_map("settings", &[("a", "b")]), web]),
    )])?;
    let app = bench.application("shop", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;

    let Some((drawn, code)) = on_terminal(&bench, "plumb app sync shop", 72, &[])? else { return Ok(()) };
    ensure!(code == 0, "{drawn}");
    ensure!(drawn.contains(REDRAWN), "nothing is drawn anew:\n{drawn}");
    ensure!(drawn.contains(" objects done"), "it does not say how much is done:\n{drawn}");
    ensure!(drawn.contains(" for 0s") || drawn.contains(" for 1s"), "no time goes on:\n{drawn}");
    ensure!(drawn.contains(&format!("{GREEN}Synced\u{1b}[0m")), "there is no colour:\n{drawn}");
    // No line is wider than the terminal: a wrapped line could not be redrawn.
    let drawn_part = drawn.rsplit_once(REDRAWN).map_or("", |(before, _)| before);
    for line in drawn_part.lines() {
        let seen = without_escapes(line);
        ensure!(seen.chars().count() <= 72, "a line of {}: {seen}", seen.chars().count());
    }

    // NO_COLOR switches colours off.
    let (plain, code) =
        on_terminal(&bench, "plumb app get shop", 200, &[("NO_COLOR", "1")])?.context("a terminal")?;
    ensure!(code == 0 && plain.contains("Synced") && !plain.contains('\u{1b}'), "{plain}");
    let (dumb, _) = on_terminal(&bench, "plumb app list", 200, &[("TERM", "dumb")])?.context("a terminal")?;
    ensure!(dumb.contains("Synced") && !dumb.contains('\u{1b}'), "{dumb}");
    let (coloured, _) = on_terminal(&bench, "plumb app list", 200, &[])?.context("a terminal")?;
    ensure!(coloured.contains(GREEN), "{coloured}");

    // Without a terminal, lines are printed one after the other.
    let told = bench.quietly("plumb app sync shop", &[], "")?;
    ensure!(told.code == 0 && !told.stdout.contains('\u{1b}'), "{}", told.stdout);
    ensure!(told.stdout.starts_with("TIMESTAMP "), "{}", told.stdout);
    let (waited, code) =
        on_terminal(&bench, "plumb app wait shop --timeout 60", 80, &[])?.context("a terminal")?;
    ensure!(code == 0 && waited.contains("Sync Status:"), "{waited}");
    Ok(())
}

/// A line without escape sequences.
fn without_escapes(line: &str) -> String {
    let mut seen = String::new();
    let mut rest = line.trim_end_matches('\r');
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        seen.push_str(before);
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    seen.push_str(rest);
    seen
}
