//! `kill -9` at random moments, over and over: what must hold in the end all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_core::plan::OPERATION_ANNOTATION;
use plumb_testkit::{audit, objects};
use serde_json::{Value, json};

use crate::stage::Stage;

/// How many kills: few in every test run, many by hand.
const KILLS_VARIABLE: &str = "PLUMB_KILLS";
const KILLS: usize = 8;
/// A sync of a round takes about this long; kills are spread over it and a little beyond.
const LATEST_KILL: u64 = 3000;

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // The multiplier and the increment are Knuth's.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One commit: hooks before and after, three waves of which one waits for pods, one object that comes and one that
/// goes.
fn commit_round(stage: &Stage, round: usize) -> Result<String> {
    let wave = |object, wave: &str| objects::annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let hook =
        |name: &str, phase: &str| objects::annotated(objects::job(name), "argocd.argoproj.io/hook", phase);
    let text = round.to_string();
    let web = objects::with(
        objects::deployment("web", 1),
        "/spec/template/metadata/annotations/round",
        json!(text),
    );
    let all = [
        hook("before", "PreSync"),
        hook("after", "PostSync"),
        wave(objects::config_map("first", &[("round", &text)]), "-1"),
        web,
        wave(objects::config_map("last", &[("round", &text)]), "1"),
        wave(objects::config_map(&format!("only-{round}"), &[]), "1"),
    ];
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])
}

#[tokio::test]
async fn killed_at_any_moment_it_ends_as_git_asks_and_nothing_happens_twice() -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "how long the test takes is its caller's choice")]
    let n_kills = std::env::var(KILLS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let seed = RandomState::new().hash_one(0u8);
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let mut stage = Stage::set().await?;
    stage.kill_plumb()?;
    let user = stage.give_plumb_a_name().await?;
    stage.break_lease().await?;
    let jobs = stage.place.record("batch/v1", "Job").await?;
    // Nobody's, and another app's: neither may be touched.
    let decoy = objects::config_map("decoy", &[("mine", "yes")]);
    let other = objects::annotated(
        objects::config_map("other", &[]),
        "argocd.argoproj.io/tracking-id",
        &format!("elsewhere:/ConfigMap:{}/other", stage.place.name()),
    );
    let mut decoys = Vec::new();
    for object in [&decoy, &other] {
        decoys.push(stage.place.apply(object).await?);
    }
    commit_round(&stage, 0)?;
    stage.start_plumb()?;
    let app = stage
        .application("struck", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
        })
        .await?;
    let (mut kills, mut round) = (0, 0);
    while kills < n_kills {
        round += 1;
        let commit = commit_round(&stage, round)?;
        let ask = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        stage.place.patch_as("a-person", &app, &ask).await?;
        for _ in 0..=dice.below(2) {
            tokio::time::sleep(Duration::from_millis(dice.below(LATEST_KILL))).await;
            stage.kill_plumb()?;
            kills += 1;
            stage.break_lease().await?;
            stage.start_plumb()?;
        }
        // A plumb that lost its lease on a busy machine has stopped, and its log is all that tells.
        settled(&stage, &app, &commit, round)
            .await
            .with_context(|| format!("seed {seed}, round {round}, plumb said:\n{}", last_words(&stage)))?;
    }
    println!("{kills} kills in {round} rounds");

    check_hooks(&jobs.seen(), round)?;
    check_audit(&stage, &user, round)?;
    check_tombstones(&stage, round).await?;
    for decoy in &decoys {
        let live = stage.place.get(decoy).await?.context("a decoy is gone")?;
        ensure!(live["metadata"]["resourceVersion"] == decoy["metadata"]["resourceVersion"], "{live}");
    }
    Ok(())
}

/// The end of plumb's log.
fn last_words(stage: &Stage) -> String {
    let log = stage.log().unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(40).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// The cluster is what Git asks, and the operation says so.
async fn settled(stage: &Stage, app: &Value, commit: &str, round: usize) -> Result<()> {
    let is_done = |app: &Value| {
        let status = &app["status"];
        status["sync"]["status"] == "Synced"
            && status["sync"]["revision"] == commit
            && status["operationState"]["phase"] == "Succeeded"
            && status["operationState"]["syncResult"]["revision"] == commit
            && app["operation"].is_null()
    };
    stage.place.wait_within(Duration::from_mins(3), app, "is what Git asks", is_done).await?;
    let text = json!(round.to_string());
    for name in ["first", "last"] {
        let live = stage.place.get(&objects::config_map(name, &[])).await?.context("it is missing")?;
        ensure!(live["data"]["round"] == text, "{live}");
    }
    let web = stage.place.get(&objects::deployment("web", 1)).await?.context("it is missing")?;
    ensure!(web["spec"]["template"]["metadata"]["annotations"]["round"] == text, "{web}");
    let mine = stage.place.list("v1", "ConfigMap", "").await?;
    let only: BTreeSet<&String> = mine.keys().filter(|name| name.starts_with("only-")).collect();
    ensure!(only.len() == 1 && only.contains(&format!("only-{round}")), "{only:?}");
    Ok(())
}

/// Each hook has at most one object per operation and try, and at least one per round.
fn check_hooks(jobs: &[Value], rounds: usize) -> Result<()> {
    let mut runs: BTreeMap<(String, String), usize> = BTreeMap::new();
    for job in jobs {
        let name = job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mark =
            job["metadata"]["annotations"][OPERATION_ANNOTATION].as_str().context("a job without a mark")?;
        *runs.entry((name, mark.to_owned())).or_default() += 1;
    }
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "hooks that ran twice in one operation: {twice:?}");
    for name in ["before", "after"] {
        let n_runs = runs.keys().filter(|(hook, _)| hook == name).count();
        ensure!(n_runs >= rounds, "{name} ran {n_runs} times in {rounds} rounds");
    }
    Ok(())
}

/// Every write of plumb is about the app's own objects or plumb's own bookkeeping.
fn check_audit(stage: &Stage, user: &str, rounds: usize) -> Result<()> {
    let log = stage.place.cluster().audit_log();
    let writes = audit::read(&log, |event| event.user.username == user && event.is_write())?;
    ensure!(!writes.is_empty(), "the audit log has no write of {user}");
    let is_ours = |object: &audit::AuditObject| {
        let name = object.name.as_str();
        match object.resource.as_str() {
            "configmaps" => {
                matches!(name, "first" | "last")
                    || name
                        .strip_prefix("only-")
                        .and_then(|round| round.parse().ok())
                        .is_some_and(|round: usize| round <= rounds)
            }
            "deployments" => name == "web",
            "jobs" => matches!(name, "before" | "after"),
            "applications" | "driftreports" => name == "struck",
            "leases" => name == "plumb",
            "secrets" => name.is_empty() || name.starts_with("plumb-tombstone-"),
            "events" => true,
            _ => false,
        }
    };
    for write in &writes {
        let object = write.object_ref.clone().unwrap_or_default();
        // What `--install` brings at each start, the same each time, and plumb's own witness.
        let is_install = write.verb == "patch"
            && match object.resource.as_str() {
                "customresourcedefinitions" | "namespaces" | "appprojects" => true,
                "mutatingwebhookconfigurations" => {
                    object.name == format!("plumb-witness-{}", stage.place.name())
                }
                _ => false,
            };
        ensure!(
            is_install || (object.namespace == stage.place.name() && is_ours(&object)),
            "a write outside the app's set: {write:?}"
        );
    }
    Ok(())
}

/// Everything that was pruned can be brought back.
async fn check_tombstones(stage: &Stage, rounds: usize) -> Result<()> {
    let tombstones = stage.place.list("v1", "Secret", "plumb.dev/app=struck").await?;
    let kept: BTreeSet<&str> = tombstones
        .values()
        .filter_map(|secret| secret["metadata"]["annotations"]["plumb.dev/object"].as_str())
        .filter_map(|object| object.rsplit('/').next())
        .collect();
    let log = audit::read(&stage.place.cluster().audit_log(), |event| {
        event.verb == "delete"
            && event.object_ref.as_ref().is_some_and(|object| {
                object.resource == "configmaps" && object.namespace == stage.place.name()
            })
    })?;
    let deleted: BTreeSet<String> =
        log.into_iter().filter_map(|event| Some(event.object_ref?.name)).collect();
    ensure!(deleted.len() >= rounds.saturating_sub(1), "{deleted:?} of {rounds} rounds");
    for name in &deleted {
        ensure!(kept.contains(name.as_str()), "{name} was deleted without a tombstone: {kept:?}");
    }
    Ok(())
}
