//! One story: rounds of commits and live edits, with kills in between.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use super::proof;
use super::round::{LEAVE, MOVER, Round, STAY};
use crate::stage::Stage;

/// How many kills: few in every test run, many by hand.
const KILLS_VARIABLE: &str = "PLUMB_KILLS";
const KILLS: usize = 8;
/// The dice of an earlier run, to play it again.
const SEED_VARIABLE: &str = "PLUMB_KILL_SEED";
/// A sync of a round takes about this long; kills are spread over it and a little beyond.
const LATEST_KILL: u64 = 6000;
/// Self-heal takes about this long.
const LATEST_KILL_OF_A_HEAL: u64 = 400;

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // The multiplier and the increment are Knuth's.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The app that is struck, and the one that shares an object with it.
struct Apps {
    struck: Value,
    mate: Value,
}

#[tokio::test]
async fn killed_at_any_moment_it_ends_as_git_asks_and_nothing_happens_twice() -> Result<()> {
    let n_kills = asked(KILLS_VARIABLE).unwrap_or(KILLS);
    let seed = asked(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().hash_one(0u8));
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let mut stage = Stage::set().await?;
    stage.kill_plumb()?;
    let user = stage.give_plumb_a_name().await?;
    stage.break_lease().await?;
    let most_copies = proof::MOST_COPIES.to_string();
    stage.setting("argocd-cm", "plumb.tombstones.app-count", &most_copies).await?;
    let jobs = stage.place.record("batch/v1", "Job").await?;
    let decoys = decoys(&stage).await?;
    Round(0).commit(&stage)?;
    stage.start_plumb()?;
    let apps = Apps { struck: application(&stage, "struck", "app").await?, mate: mate(&stage).await? };
    let mover = stage.place.wait(&objects::config_map(MOVER, &[]), "exists", |_| true).await?;
    let (mut kills, mut round) = (0, Round(0));
    while kills < n_kills {
        round = Round(round.0 + 1);
        kills += play(&mut stage, &apps, round, &mut dice)
            .await
            // A plumb that lost its lease on a busy machine has stopped, and its log is all that tells.
            .with_context(|| format!("seed {seed}, {round:?}, plumb said:\n{}", last_words(&stage)))?;
    }
    println!("{kills} kills in {} rounds", round.0);

    proof::hooks(&stage, &user, &jobs, round)?;
    proof::writes(&stage, &user, round)?;
    proof::tombstones(&stage, round).await?;
    for decoy in &decoys {
        let live = stage.place.get(decoy).await?.context("a decoy is gone")?;
        ensure!(live["metadata"]["resourceVersion"] == decoy["metadata"]["resourceVersion"], "{live}");
    }
    let at_the_end = stage.place.get(&mover).await?.context("what moved is gone")?;
    ensure!(at_the_end["metadata"]["uid"] == mover["metadata"]["uid"], "what moved was made anew");
    Ok(())
}

fn asked<T: std::str::FromStr>(variable: &str) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "how long the test takes is its caller's choice")]
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Nobody's, and another app's: neither may be touched.
async fn decoys(stage: &Stage) -> Result<Vec<Value>> {
    let other = objects::annotated(
        objects::config_map("other", &[]),
        "argocd.argoproj.io/tracking-id",
        &format!("elsewhere:/ConfigMap:{}/other", stage.place.name()),
    );
    let mut decoys = Vec::new();
    for object in [&objects::config_map("decoy", &[("mine", "yes")]), &other, &objects::job("idle")] {
        decoys.push(stage.place.apply(object).await?);
    }
    // It has a status of its own, which comes and stays.
    if let Some(idle) = decoys.last_mut() {
        *idle = stage.place.wait(idle, "is done", |job| job["status"]["succeeded"] == 1).await?;
    }
    Ok(decoys)
}

async fn application(stage: &Stage, name: &str, folder: &str) -> Result<Value> {
    stage
        .application(name, |app| {
            app["spec"]["source"]["path"] = json!(folder);
            app["spec"]["syncPolicy"] = json!({
                "automated": {"prune": true, "selfHeal": true},
                "retry": {"limit": 1, "backoff": {"duration": "1s", "factor": 1}},
            });
        })
        .await
}

async fn mate(stage: &Stage) -> Result<Value> {
    application(stage, "mate", "mate").await
}

/// One commit, struck while it is synced, and an edit, struck while it is healed. Returns how often.
async fn play(stage: &mut Stage, apps: &Apps, round: Round, dice: &mut Dice) -> Result<usize> {
    let mut kills = 0;
    let commit = round.commit(stage)?;
    let ask = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    for app in [&apps.struck, &apps.mate] {
        stage.place.patch_as("a-person", app, &ask).await?;
    }
    for _ in 0..=dice.below(2) {
        strike(stage, dice.below(LATEST_KILL)).await?;
        kills += 1;
    }
    settled(stage, apps, &commit, round).await?;
    // What failed is not healed either, until something new comes from Git.
    if !round.fails() && dice.below(2) == 0 {
        let first = objects::config_map("first", &[]);
        stage.place.patch_as("a-person", &first, &json!({"data": {"round": "edited"}})).await?;
        strike(stage, dice.below(LATEST_KILL_OF_A_HEAL)).await?;
        kills += 1;
        stage.place.wait(&first, "is healed", |live| live["data"]["round"] == round.text()).await?;
        settled(stage, apps, &commit, round).await?;
    }
    Ok(kills)
}

/// `kill -9` after a while, and a new start.
async fn strike(stage: &mut Stage, after: u64) -> Result<()> {
    // The one thing that a moment in time is for.
    tokio::time::sleep(Duration::from_millis(after)).await;
    stage.kill_plumb()?;
    stage.break_lease().await?;
    stage.start_plumb()
}

/// The end of plumb's log.
fn last_words(stage: &Stage) -> String {
    let log = stage.log().unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(40).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// The cluster is what Git asks, and the operations say so.
async fn settled(stage: &Stage, apps: &Apps, commit: &str, round: Round) -> Result<()> {
    let has_ended = |app: &Value| {
        let (sync, operation) = (&app["status"]["sync"], &app["status"]["operationState"]);
        let phase = if round.fails() { "Failed" } else { "Succeeded" };
        sync["status"] == "Synced"
            && sync["revision"] == commit
            && operation["phase"] == phase
            && operation["syncResult"]["revision"] == commit
            && app["operation"].is_null()
    };
    let limit = Duration::from_mins(3);
    stage.place.wait_within(limit, &apps.struck, "is what Git asks", has_ended).await?;
    let is_synced = |app: &Value| {
        let sync = &app["status"]["sync"];
        sync["status"] == "Synced" && sync["revision"] == commit && app["operation"].is_null()
    };
    stage.place.wait_within(limit, &apps.mate, "is what Git asks", is_synced).await?;

    let text = json!(round.text());
    for name in STAY.into_iter().chain([MOVER]) {
        let live = stage.place.get(&objects::config_map(name, &[])).await?;
        let live = live.with_context(|| format!("{name} is missing"))?;
        ensure!(live["data"]["round"] == text, "{live}");
    }
    let web = stage.place.get(&objects::deployment("web", 1)).await?.context("web is missing")?;
    ensure!(web["spec"]["template"]["metadata"]["annotations"]["round"] == text, "{web}");
    let names = stage.place.list("v1", "ConfigMap", "").await?;
    for beginning in LEAVE {
        let found: Vec<&String> = names.keys().filter(|name| name.starts_with(beginning)).collect();
        ensure!(found == [&format!("{beginning}{}", round.text())], "{found:?}");
    }
    proof::residue(stage, round, commit).await
}
