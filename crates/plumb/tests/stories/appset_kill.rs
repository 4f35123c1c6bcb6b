//! A set with many Applications, and a plumb that is killed at any moment while they come, change and go.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::audit::{self, AuditEvent};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Applications of the set.
const APPLICATIONS: usize = 200;
/// How many Applications one commit replaces, and how many it changes.
const REPLACED: usize = 30;
const CHANGED: u64 = 50;
/// How many kills: few in every test run, many by hand.
const KILLS: usize = 6;
/// All writes of a commit take about this long; kills are spread over it and a start of plumb.
const LATEST_KILL: u64 = 4000;

fn asked<T: std::str::FromStr>(variable: &str) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "how long the test takes is its caller's choice")]
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// What Git says, and what it said.
struct Generators {
    /// The value of each Application.
    wanted: BTreeMap<String, u64>,
    /// How often each was changed after its creation.
    changes: BTreeMap<String, usize>,
    /// Those that Git no longer has.
    gone: Vec<String>,
    n_ever: usize,
    dice: u64,
}

impl Generators {
    fn below(&mut self, end: u64) -> u64 {
        // The multiplier and the increment are Knuth's.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % end
    }

    fn file(name: &str, value: u64) -> (String, String) {
        (format!("params/{name}.yaml"), format!("name: {name}\nvalue: \"{value}\"\n"))
    }

    fn add(&mut self, count: usize) -> Vec<(String, String)> {
        let names: Vec<String> = (0..count).map(|n| format!("k-{:05}", self.n_ever + n)).collect();
        self.n_ever += count;
        self.wanted.extend(names.iter().map(|name| (name.clone(), 0)));
        names.iter().map(|name| Self::file(name, 0)).collect()
    }

    /// Changes some, removes some, adds as many. A name never comes back.
    fn next(&mut self, stage: &Stage) -> Result<()> {
        let names: Vec<String> = self.wanted.keys().cloned().collect();
        let mut files = Vec::new();
        for name in &names {
            if self.below(u64::try_from(APPLICATIONS)?) < CHANGED {
                let value = self.below(1_000_000) + 1;
                self.wanted.insert(name.clone(), value);
                *self.changes.entry(name.clone()).or_default() += 1;
                files.push(Self::file(name, value));
            }
        }
        files.extend(self.add(REPLACED));
        stage.repo.commit(&files)?;
        let first = usize::try_from(self.below(u64::try_from(names.len() - REPLACED)?))?;
        let removed = &names[first..first + REPLACED];
        let paths: Vec<String> = removed.iter().map(|name| Self::file(name, 0).0).collect();
        stage.repo.remove(&paths.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.wanted.retain(|name, _| !removed.contains(name));
        self.gone.extend(removed.iter().cloned());
        Ok(())
    }
}

fn set(stage: &Stage) -> Value {
    let git = json!({
        "repoURL": stage.repo.url(), "revision": "HEAD", "files": [{"path": "params/*.yaml"}],
        "requeueAfterSeconds": 0,
    });
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        // Commits that a killed plumb missed come together, and may be more than a set loses at a time.
        "metadata": {"name": "many", "namespace": stage.place.name(), "annotations": {"plumb.appset.budget": "off"}},
        "spec": {
            "generators": [{"git": git}],
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"value": "v{{value}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": stage.repo.url(), "path": "app", "targetRevision": "HEAD"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()},
                },
            },
        },
    })
}

/// The value of each Application of the set that is not being deleted.
async fn generated(stage: &Stage) -> Result<BTreeMap<String, String>> {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{}/applications", stage.place.name());
    let list: Value = serde_json::from_str(&stage.place.read(&path).await?)?;
    let items = list["items"].as_array().context("a list")?;
    let of_set = items.iter().filter(|item| {
        item["metadata"]["deletionTimestamp"].is_null()
            && item["metadata"]["ownerReferences"][0]["name"] == "many"
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(of_set
        .map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["labels"]["value"])))
        .collect())
}

async fn settled(stage: &Stage, generators: &Generators) -> Result<()> {
    let wanted: BTreeMap<String, String> =
        generators.wanted.iter().map(|(name, value)| (name.clone(), format!("v{value}"))).collect();
    let what = format!("the {} Applications are what Git says", wanted.len());
    let is_equal = |found: &Option<BTreeMap<String, String>>| found.as_ref() == Some(&wanted);
    wait::until_seen(Duration::from_mins(3), &what, async || generated(stage).await.ok(), is_equal).await?;
    Ok(())
}

async fn strike(stage: &mut Stage, after: u64) -> Result<()> {
    // The moment is the point: it is drawn, and nothing is waited for.
    tokio::time::sleep(Duration::from_millis(after)).await;
    stage.kill_plumb()?;
    stage.break_lease().await?;
    stage.start_plumb()
}

/// An Application that no set generates, and one of another set.
async fn decoys(stage: &Stage) -> Result<Vec<Value>> {
    let alone =
        stage.application("alone", |app| app["metadata"]["labels"] = json!({"value": "mine"})).await?;
    let mut other = set(stage);
    other["metadata"]["name"] = json!("many-others");
    other["spec"]["generators"] = json!([{"list": {"elements": [{"name": "of-other", "value": "0"}]}}]);
    stage.place.apply(&other).await?;
    Ok(vec![alone, stage.application_named("of-other")])
}

#[tokio::test]
async fn killed_at_any_moment_a_set_ends_with_what_git_says_and_touches_nothing_else() -> Result<()> {
    let n_kills = asked("PLUMB_KILLS").unwrap_or(KILLS);
    let seed = asked("PLUMB_KILL_SEED").unwrap_or_else(|| RandomState::new().hash_one(0u8));
    println!("seed {seed}");
    let mut stage = Stage::set().await?;
    stage.kill_plumb()?;
    let user = stage.give_plumb_a_name().await?;
    stage.break_lease().await?;
    let mut generators = Generators {
        wanted: BTreeMap::new(),
        changes: BTreeMap::new(),
        gone: Vec::new(),
        n_ever: 0,
        dice: seed,
    };
    let mut files = generators.add(APPLICATIONS);
    files.push(("app/map.yaml".to_owned(), objects::manifests(&[objects::config_map("map", &[])])));
    stage.repo.commit(&files)?;
    let mut decoys = decoys(&stage).await?;
    let set = set(&stage);
    stage.place.apply(&set).await?;
    stage.start_plumb()?;
    let (mut n_struck, mut n_rounds) = (0, 0);
    while n_struck < n_kills {
        for _ in 0..=generators.below(2) {
            let after = generators.below(LATEST_KILL);
            strike(&mut stage, after).await?;
            n_struck += 1;
        }
        settled(&stage, &generators).await.with_context(|| format!("seed {seed}, round {n_rounds}"))?;
        if n_rounds == 0 {
            for decoy in &mut decoys {
                *decoy = stage.place.wait(decoy, "exists", |_| true).await?;
            }
        }
        n_rounds += 1;
        generators.next(&stage)?;
        let ask = json!({"metadata": {"annotations": {
            "argocd.argoproj.io/application-set-refresh": n_rounds.to_string(),
        }}});
        stage.place.patch_as("kubectl", &set, &ask).await?;
    }
    settled(&stage, &generators).await.with_context(|| format!("seed {seed}, the last round"))?;
    println!("{n_struck} kills in {n_rounds} rounds, {} Applications in all", generators.n_ever);
    for decoy in &decoys {
        let live = stage.place.get(decoy).await?.context("an Application of somebody else is gone")?;
        for part in ["spec", "metadata/uid", "metadata/labels", "metadata/ownerReferences"] {
            let part = format!("/{part}");
            ensure!(live.pointer(&part) == decoy.pointer(&part), "{part} changed: {live}");
        }
    }
    proof(&stage, &user, &generators)
}

/// The audit log knows of no creation, change or deletion that Git did not ask for, and of none twice.
fn proof(stage: &Stage, user: &str, generators: &Generators) -> Result<()> {
    let namespace = stage.place.name();
    let is_ours = |event: &AuditEvent| {
        let is_application = event.object_ref.as_ref().is_some_and(|object| {
            object.resource == "applications"
                && object.namespace == namespace
                && object.subresource.is_empty()
        });
        let is_done = event.response_status.is_some_and(|status| (200..300).contains(&status.code));
        event.user.username == user && event.is_write() && is_application && is_done
    };
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for event in audit::read(&stage.place.cluster().audit_log(), is_ours)? {
        let verb = match event.verb.as_str() {
            "create" => "create",
            "delete" => "delete",
            "patch" if event.request_uri.contains("applicationset-controller") => "change",
            "deletecollection" => "deletecollection",
            _ => continue,
        };
        let name = event.object_ref.map(|object| object.name).unwrap_or_default();
        *counts.entry((verb, name)).or_default() += 1;
    }
    let n_of = |verb: &str| counts.keys().filter(|(known, _)| *known == verb).count();
    ensure!(
        n_of("create") > 0 && n_of("delete") > 0 && n_of("change") > 0,
        "the audit log has no writes of {user}"
    );
    for ((verb, name), count) in &counts {
        let most = match *verb {
            "create" => usize::from(name.starts_with("k-") || name == "of-other"),
            "delete" => usize::from(generators.gone.contains(name)),
            "change" => generators.changes.get(name).copied().unwrap_or_default(),
            _ => 0,
        };
        ensure!(*count <= most, "{verb} of {name}: {count} times, and Git asked for {most}");
    }
    Ok(())
}
