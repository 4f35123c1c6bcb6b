//! The plan of `app sync --dry-run`: steps, skipped objects, and refusals of the API server.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::json;

use crate::bench::Bench;

const WAVE: &str = "argocd.argoproj.io/sync-wave";
const HOOK: &str = "argocd.argoproj.io/hook";
const OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The plan that a dry run prints, with single spaces, and how the command ends.
fn plan(bench: &Bench, words: &str) -> Result<(Vec<String>, i32)> {
    let said = bench.quietly(&format!("plumb app sync shop --dry-run --timeout 60 {words}"), &[], "")?;
    let rows = said.stdout.lines().skip_while(|line| !line.starts_with("PHASE")).skip(1);
    let rows = rows.take_while(|line| !line.trim().is_empty());
    let spaced = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = rows.map(|line| spaced(line).replace(&format!("{}/", bench.place.name()), ""));
    Ok((rows.collect(), said.code))
}

#[tokio::test]
async fn a_dry_run_prints_what_would_happen_and_changes_nothing() -> Result<()> {
    let bench = Bench::with_engine().await?;
    let conf = |text: &str| objects::config_map("conf", &[("text", text)]);
    let held = |text: &str| objects::config_map("held", &[("text", text)]);
    let web = objects::deployment("web", 1);
    let left = [
        objects::config_map("left", &[]),
        objects::annotated(objects::config_map("kept", &[]), OPTIONS, "Prune=false"),
        objects::annotated(objects::config_map("asked", &[]), OPTIONS, "Prune=confirm"),
    ];
    let first = [conf("old"), held("old"), web.clone()];
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&[&first[..], &left[..]].concat()))])?;
    bench.repo.tag("old")?;
    let app = bench.application("shop", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;
    bench.quietly("plumb app sync shop --timeout 60", &[], "")?;
    bench.until(&app, "Synced", "Healthy").await?;
    let paused = bench.quietly("plumb pause shop ConfigMap/held --for 1h --reason not-now", &[], "")?;
    assert_eq!(paused.code, 0, "{}", paused.stderr);

    let hook = |name: &str, phase: &str| objects::annotated(objects::job(name), HOOK, phase);
    let late = objects::annotated(objects::config_map("late", &[]), WAVE, "3");
    let mut next = vec![conf("new"), held("new"), web, hook("smoke", "PostSync"), hook("migrate", "PreSync")];
    next.extend([hook("sorry", "SyncFail"), late]);
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&next))])?;
    bench.quietly("plumb app get shop --refresh", &[], "")?;
    let migrate = "PreSync 0 run hook batch/Job migrate hook, deleted BeforeHookCreation completion";
    let smoke = "PostSync 0 run hook batch/Job smoke hook, deleted BeforeHookCreation completion";
    let rest = [
        "Sync 0 keep apps/Deployment web in sync health",
        "Sync 0 skip ConfigMap held out of sync, not applied: paused not-now -",
        "Sync 0 apply ConfigMap conf out of sync health",
        "Sync 3 apply ConfigMap late missing health",
    ];
    let in_order = |prunes: [&'static str; 3]| -> Vec<&'static str> {
        [&[migrate][..], &prunes, &rest, &[smoke]].concat()
    };
    let unasked = in_order([
        "Sync 0 skip ConfigMap asked removed from Git, ignored (requires pruning) -",
        "Sync 0 skip ConfigMap kept removed from Git, ignored (no prune) -",
        "Sync 0 skip ConfigMap left removed from Git, ignored (requires pruning) -",
    ]);
    let asked = in_order([
        "Sync 0 prune ConfigMap asked removed from Git, waits for confirmation: Prune=confirm deletion",
        "Sync 0 skip ConfigMap kept removed from Git, ignored (no prune) -",
        "Sync 0 prune ConfigMap left removed from Git deletion",
    ]);
    let sorted = |mut rows: Vec<String>| {
        rows.sort();
        rows
    };
    let as_rows = |rows: &[&str]| sorted(rows.iter().map(|row| (*row).to_owned()).collect());
    let (rows, code) = plan(&bench, "")?;
    assert_eq!(
        (rows.first().map(String::as_str), rows.last().map(String::as_str)),
        (Some(migrate), Some(smoke))
    );
    assert_eq!((sorted(rows), code), (as_rows(&unasked), 0));
    let (rows, code) = plan(&bench, "--prune")?;
    assert_eq!((sorted(rows), code), (as_rows(&asked), 0));
    let (rows, code) = plan(&bench, "--resource :ConfigMap:conf")?;
    assert_eq!((rows, code), (vec!["Sync 0 apply ConfigMap conf out of sync -".to_owned()], 0));

    // The API server refuses one object.
    next.push(objects::with(objects::service("front", 80), "/spec/ports/0/port", json!(99_999)));
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&next))])?;
    bench.quietly("plumb app get shop --refresh", &[], "")?;
    let (rows, code) = plan(&bench, "--prune")?;
    assert_eq!((rows.len(), code), (asked.len() + 1, 1), "{rows:#?}");
    let refused = rows.iter().find(|row| row.contains("Service front")).cloned().unwrap_or_default();
    assert!(refused.starts_with("Sync 0 refused Service front"), "{refused}");
    assert!(refused.contains("must be between 1 and 65535"), "{refused}");

    let live = bench.place.get(&conf("")).await?.unwrap_or_default();
    assert_eq!(live["data"]["text"], "old", "a dry run changes nothing");
    assert!(bench.place.get(&objects::job("migrate")).await?.is_none(), "a dry run runs no hook");
    assert!(bench.place.get(&objects::config_map("left", &[])).await?.is_some(), "a dry run deletes nothing");

    // A sync that automated sync would undo is refused.
    let paused = bench.quietly("plumb pause shop --for 1h --reason not-now", &[], "")?;
    assert_eq!(paused.code, 0, "{}", paused.stderr);
    let automated = json!({"spec": {"syncPolicy": {"automated": {}}}});
    bench.place.patch_as("a-person", &app, &automated).await?;
    let refused = bench.quietly("plumb app sync shop --revision old", &[], "")?;
    assert_eq!(refused.code, 20);
    assert!(
        refused.stderr.contains("cannot sync to old: auto-sync currently set to HEAD"),
        "{}",
        refused.stderr
    );
    Ok(())
}
