//! Apps that go to several clusters, one of which is not always there.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::line::{Line, LineState};
use plumb_testkit::{TestNamespace, another_cluster, objects, wait};
use serde_json::{Value, json};

use crate::outside;
use crate::safety::has_condition;
use crate::stage::Stage;

/// A Secret that registers a cluster.
pub(crate) fn cluster_secret(name: &str, server: &str, config: &str) -> Value {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("cluster-{name}")},
        "stringData": {"name": name, "server": server, "config": config},
    });
    objects::labelled(secret, "argocd.argoproj.io/secret-type", "cluster")
}

fn says(app: &Value, condition: &str, text: &str) -> bool {
    let conditions = app["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|entry| {
        entry["type"] == condition && entry["message"].as_str().is_some_and(|message| message.contains(text))
    })
}

/// A second cluster, a namespace in it, and a line to it.
async fn elsewhere() -> Result<(TestNamespace, Line)> {
    let cluster = tokio::task::spawn_blocking(another_cluster).await.context("start a cluster")??;
    let place = TestNamespace::in_cluster(cluster).await?;
    let line = Line::to(cluster.port()?).await?;
    Ok((place, line))
}

/// A workload with a Secret that is not in Git.
fn uses_secret() -> Value {
    let mut web = objects::deployment("web", 1);
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "by-hand"}}]);
    web
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
}

/// On several threads: the line to the other cluster works while a command of plumb is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_goes_away_takes_only_its_own_apps_with_it() -> Result<()> {
    let stage = Stage::set().await?;
    let (far_place, line) = elsewhere().await?;
    let config = far_place.cluster().certificate_config()?.to_string();
    stage.place.apply(&cluster_secret("east", &line.server(), &config)).await?;
    let (kept, leaving, near_map) = (
        objects::config_map("kept", &[("a", "1")]),
        objects::config_map("leaving", &[("a", "1")]),
        objects::config_map("near", &[("a", "1")]),
    );
    stage.repo.commit(&[
        ("far/kept.yaml", objects::manifests(std::slice::from_ref(&kept))),
        ("far/leaving.yaml", objects::manifests(std::slice::from_ref(&leaving))),
        ("far/web.yaml", objects::manifests(&[uses_secret()])),
        ("near/all.yaml", objects::manifests(std::slice::from_ref(&near_map))),
    ])?;
    let far = stage
        .application("far", |app| {
            app["spec"]["source"]["path"] = json!("far");
            app["spec"]["destination"] = json!({"name": "east", "namespace": far_place.name()});
            automated(app);
        })
        .await?;
    let near = stage
        .application("near", |app| {
            app["spec"]["source"]["path"] = json!("near");
            automated(app);
        })
        .await?;
    stage.until_sync(&far, "Synced").await?;
    stage.until_sync(&near, "Synced").await?;
    assert!(far_place.get(&kept).await?.is_some());
    assert!(stage.place.get(&kept).await?.is_none(), "it goes to the other cluster only");

    // A Secret there that Git does not know is found from here.
    far_place.apply(&objects::secret("by-hand", &[("password", "wryneck")])).await?;
    let said = stage.plumb(&["doctor", "--secrets"])?;
    ensure!(said.contains("CLUSTER east") && said.contains("by-hand (password)"), "{said}");
    ensure!(!said.contains("wryneck"), "{said}");

    // What somebody edits there is seen and healed there.
    far_place.patch_as("a-person", &kept, &json!({"data": {"a": "edited"}})).await?;
    far_place.wait(&kept, "is healed", |live| live["data"]["a"] == "1").await?;
    stage.until_sync(&far, "Synced").await?;

    for outage in [LineState::Cut, LineState::Silent] {
        line.set(outage);
        let round = format!("{outage:?}");
        let away = |app: &Value| {
            app["status"]["sync"]["status"] == "Unknown"
                && app["status"]["health"]["status"] == "Unknown"
                && says(app, "ComparisonError", "cannot be reached")
        };
        // A line that only falls silent is noticed by unanswered pings.
        stage.place.wait_within(Duration::from_mins(2), &far, "is known to be away", away).await?;

        let said = stage.plumb_says(&["doctor", "--secrets", "--exit-code"])?;
        ensure!(said.contains("CLUSTER east") && said.contains("not looked at: cannot reach"), "{said}");

        let address = stage.address("metrics and health").await?;
        let (_, text) = outside::get(address, "/metrics").await?;
        let status = outside::metric(&text, "argocd_cluster_connection_status", &[&line.server()]);
        assert!(status.is_some_and(|status| status.ends_with(" 0")), "{status:?}");

        // Its neighbour goes on as if nothing was. What left Git is still there: nobody can look.
        let changed = objects::config_map("near", &[("a", &round)]);
        stage.repo.commit(&[("near/all.yaml", objects::manifests(std::slice::from_ref(&changed)))])?;
        if outage == LineState::Cut {
            stage.repo.remove(&["far/leaving.yaml"])?;
        }
        stage.refresh(&near).await?;
        stage.place.wait(&near_map, "has the new value", |live| live["data"]["a"] == *round).await?;
        stage.refresh(&far).await?;
        let still = stage.place.get(&far).await?.unwrap_or_default();
        assert!(away(&still), "{still:#}");
        far_place.wait(&kept, "stays", |live| live["metadata"]["deletionTimestamp"].is_null()).await?;

        // Somebody edits it meanwhile; it is found when the line stands again.
        far_place.patch_as("a-person", &kept, &json!({"data": {"a": round}})).await?;
        line.set(LineState::Whole);
        far_place.wait(&kept, "is healed", |live| live["data"]["a"] == "1").await?;
        stage
            .place
            .wait(&far, "is well again", |app| {
                app["status"]["sync"]["status"] == "Synced"
                    && app["status"]["health"]["status"] == "Healthy"
                    && !has_condition(app, "ComparisonError")
            })
            .await?;
        far_place.wait_gone(&leaving).await?;
    }

    // Nobody uses it any more: nobody watches it.
    stage.place.delete(&far).await?;
    stage.place.wait_gone(&far).await?;
    wait::until_seen(
        Duration::from_mins(1),
        "the connections end",
        async || line.n_open(),
        |open| *open == 0,
    )
    .await?;
    assert!(far_place.get(&kept).await?.is_some(), "without a finalizer its objects stay");
    Ok(())
}

// The line must go on while a command is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_does_to_an_object_is_done_in_its_own_cluster() -> Result<()> {
    let mut stage = Stage::set().await?;
    let (far_place, line) = elsewhere().await?;
    let secret =
        cluster_secret("east", &line.server(), &far_place.cluster().certificate_config()?.to_string());
    stage.place.apply(&secret).await?;
    let (kept, leaving) =
        (objects::config_map("kept", &[("a", "1")]), objects::config_map("leaving", &[("a", "1")]));
    stage.repo.commit(&[
        ("app/kept.yaml", objects::manifests(std::slice::from_ref(&kept))),
        ("app/leaving.yaml", objects::manifests(std::slice::from_ref(&leaving))),
    ])?;
    // Another name than in other stories: these share the second cluster, and a mark there names the app alone.
    let far = stage
        .application("worked-on", |app| {
            app["spec"]["destination"] = json!({"name": "east", "namespace": far_place.name()});
            automated(app);
        })
        .await?;
    stage.until_sync(&far, "Synced").await?;
    let is_held = |app: &Value| app["metadata"]["annotations"]["plumb.dev/paused-objects"].is_string();
    stage.plumb(&["pause", "worked-on", "ConfigMap/kept", "--for", "1h", "--reason", "by hand"])?;
    stage.place.wait(&far, "holds an object", is_held).await?;
    stage.plumb(&["resume", "worked-on", "ConfigMap/kept"])?;
    stage.place.wait(&far, "holds no object", |app| !is_held(app)).await?;

    stage.repo.remove(&["app/leaving.yaml"])?;
    stage.refresh(&far).await?;
    far_place.wait_gone(&leaving).await?;
    stage.kill_plumb()?;
    let listed: Value = serde_json::from_str(&stage.plumb(&["undo", "list", "-o", "json"])?)?;
    assert_eq!(listed[0]["server"], json!(line.server()));
    let id = listed[0]["id"].as_str().context("no id")?.to_owned();

    // What cannot be done there is not done here.
    line.set(LineState::Cut);
    let said = stage.plumb_says(&["undo", "restore", &id])?;
    assert!(said.contains(&format!("reach cluster {}", line.server())), "{said}");
    stage.place.delete(&secret).await?;
    let said = stage.plumb_says(&["undo", "restore", &id])?;
    assert!(said.contains(&format!("cluster {} is not registered", line.server())), "{said}");
    assert!(far_place.get(&leaving).await?.is_none());
    line.set(LineState::Whole);
    stage.place.apply(&secret).await?;
    stage.plumb(&["undo", "restore", &id])?;
    assert!(far_place.get(&leaving).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_bad_cluster_secret_is_told_to_its_apps_alone() -> Result<()> {
    let stage = Stage::set().await?;
    let exec = json!({"execProviderConfig": {"command": "sh", "args": ["-c", "id"]}}).to_string();
    stage
        .place
        .apply(&cluster_secret("garbled", "https://garbled.invalid", "{\"bearerToken\": s3cr3t"))
        .await?;
    stage.place.apply(&cluster_secret("program", "https://program.invalid", &exec)).await?;
    stage
        .repo
        .commit(&[("app/fine.yaml", objects::manifests(&[objects::config_map("fine", &[("a", "1")])]))])?;
    let to = |destination: Value| {
        move |app: &mut Value| {
            app["spec"]["destination"] = destination;
            automated(app);
        }
    };
    let namespace = stage.place.name();
    let garbled =
        stage.application("garbled", to(json!({"name": "garbled", "namespace": namespace}))).await?;
    let program = stage
        .application("program", to(json!({"server": "https://program.invalid", "namespace": namespace})))
        .await?;
    let nowhere = stage
        .application("nowhere", to(json!({"server": "https://nowhere", "namespace": namespace})))
        .await?;
    let fine = stage.application("fine", to(json!({"name": "in-cluster", "namespace": namespace}))).await?;
    stage.until_sync(&fine, "Synced").await?;
    let garbled = stage
        .place
        .wait(&garbled, "says what is wrong", |app| {
            says(app, "InvalidSpecError", "Secret cluster-garbled cannot be read")
        })
        .await?;
    assert!(!garbled.to_string().contains("s3cr3t"));
    assert_eq!(garbled["status"]["sync"]["status"], "Unknown");
    stage
        .place
        .wait(&program, "says what is wrong", |app| {
            says(app, "ComparisonError", "execProviderConfig") && says(app, "ComparisonError", "switched off")
        })
        .await?;
    stage
        .place
        .wait(&nowhere, "says what is wrong", |app| {
            says(app, "InvalidSpecError", "\"https://nowhere\" not found")
        })
        .await?;

    // Deleting waits where the cluster cannot be told, and ends where there is none.
    let cascade = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    for app in [&garbled, &nowhere] {
        stage.place.patch_as("a-person", app, &cascade).await?;
    }
    stage.place.delete(&nowhere).await?;
    stage.place.wait_gone(&nowhere).await?;

    // A Secret that is mended is taken up.
    let (far_place, line) = elsewhere().await?;
    let config = far_place.cluster().certificate_config()?.to_string();
    stage.place.apply(&cluster_secret("garbled", &line.server(), &config)).await?;
    let patch = json!({"spec": {"destination": {"namespace": far_place.name()}}});
    stage.place.patch_as("a-person", &garbled, &patch).await?;
    stage.until_sync(&garbled, "Synced").await?;
    let there = objects::config_map("fine", &[]);
    assert!(far_place.get(&there).await?.is_some());

    // Garbled again, its app is not given up: that would leave its object behind.
    stage.place.apply(&cluster_secret("garbled", &line.server(), "{\"bearerToken\": s3cr3t")).await?;
    stage.place.wait(&garbled, "is told", |app| says(app, "InvalidSpecError", "cannot be read")).await?;
    stage.place.delete(&garbled).await?;
    stage.place.wait(&garbled, "waits", |app| says(app, "DeletionError", "cannot be read")).await?;
    assert!(far_place.get(&there).await?.is_some());
    stage.place.apply(&cluster_secret("garbled", &line.server(), &config)).await?;
    stage.place.wait_gone(&garbled).await?;
    assert!(far_place.get(&there).await?.is_none());
    Ok(())
}
