//! Health: a crash loop cannot hide, what takes too long is called stuck, users' scripts count, promises are checked.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::objects::{self, Trouble, annotated, troubled};
use plumb_testkit::proxy::{Fault, Requests, Times};
use serde_json::{Value, json};

use crate::stage::Stage;

fn message(app: &Value) -> &str {
    app["status"]["health"]["message"].as_str().unwrap_or_default()
}

fn report_of(app: &Value) -> Value {
    json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": app["metadata"]["name"]}})
}

fn settings(data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "labels": {"app.kubernetes.io/part-of": "argocd"}},
        "data": data,
    })
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {}});
}

#[tokio::test]
async fn a_crash_loop_is_named_with_its_pod_reason_restarts_exit_code_and_last_line() -> Result<()> {
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    let log = "starting\nconnecting with password=hunter2\nfatal: no database\n";
    proxy.inject(Fault::Answer(log.to_owned()), Requests::to("/log?"), Times::Always);
    let mut web = troubled(objects::deployment("web", 1), Trouble::CrashLoop);
    web["spec"]["template"]["metadata"]["annotations"] =
        json!({"plumb.dev/exit-code": "3", "plumb.dev/message": "token: abcdef"});
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[web]))])?;
    let app = stage.application("loop", automated).await?;
    let tells_all = |live: &Value| message(live).contains("last line of its log: fatal: no database");
    let live = stage.place.wait(&app, "tells the last line of the log", tells_all).await?;
    assert_eq!(live["status"]["health"]["status"], "Progressing", "as Argo CD has it");
    let pods = stage.place.list("v1", "Pod", "app=web").await?;
    let pod = pods.keys().next().context("a pod")?;
    for part in
        [pod.as_str(), "apps/Deployment", "keeps crashing (CrashLoopBackOff)", "restart", "last exit code 3"]
    {
        assert!(message(&live).contains(part), "{part} in {}", message(&live));
    }
    let tells = |report: &Value| report["health"][0]["causes"].to_string().contains("fatal: no database");
    let at_last = stage.place.wait(&report_of(&app), "names the loop", tells).await?;
    let ill = &at_last["health"][0];
    assert_eq!((&ill["kind"], &ill["name"]), (&json!("Deployment"), &json!("web")));
    for said in [live.to_string(), at_last.to_string()] {
        assert!(!said.contains("hunter2") && !said.contains("abcdef"), "{said}");
    }
    let n_logs = proxy.count(&Requests::to("/log?"));
    assert_eq!(n_logs, 1, "the same trouble is asked about once, however often it crashes");
    Ok(())
}

#[tokio::test]
async fn what_takes_too_long_is_stuck_and_a_restart_keeps_the_time() -> Result<()> {
    let mut stage = Stage::set().await?;
    stage.place.apply(&settings(&json!({"plumb.health.stuckAfter": "1s"}))).await?;
    let mut web = troubled(objects::deployment("web", 1), Trouble::NotReady);
    // The object's own deadline is longer than that.
    web["spec"]["progressDeadlineSeconds"] = json!(3);
    web["spec"]["minReadySeconds"] = json!(1);
    let claim = annotated(objects::volume_claim("data", "1Gi"), "a", "b");
    let claim = objects::with(claim, "/spec/storageClassName", json!("nobody-makes-these"));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[web, claim.clone()]))])?;
    let app = stage.application("slow", automated).await?;
    let is_stuck = |report: &Value| {
        let all = report["health"].as_array();
        all.is_some_and(|all| all.iter().any(|ill| ill["name"] == "data" && ill["stuck"] == true))
    };
    let report = stage.place.wait(&report_of(&app), "names the claim", is_stuck).await?;
    let since_of = |report: &Value| {
        let all = report["health"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|ill| ill["name"] == "data").map(|ill| ill["since"].clone()).unwrap_or_default()
    };
    let since = since_of(&report);
    let has_condition = |live: &Value| {
        let all = live["status"]["conditions"].as_array();
        all.is_some_and(|all| {
            all.iter().any(|one| {
                let words = one["message"].as_str().unwrap_or_default();
                one["type"] == "StuckWarning" && words.contains("data") && words.contains("stuck since")
            })
        })
    };
    stage.place.wait(&app, "says that it is stuck", has_condition).await?;

    stage.kill_plumb()?;
    // A condition that changed in between would be when it began, if nothing were noted.
    let moment = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!([{"type": "Resizing", "status": "True", "lastTransitionTime": moment}]);
    stage.place.patch_status_as("a-controller", &claim, &json!({"conditions": condition})).await?;
    let conf = objects::config_map("late", &[("a", "1")]);
    stage.repo.commit(&[("app/late.yaml", objects::manifests(&[conf]))])?;
    stage.start_plumb()?;
    let is_seen = |live: &Value| {
        let all = live["status"]["resources"].as_array();
        all.is_some_and(|all| all.iter().any(|one| one["name"] == "late"))
    };
    stage.place.wait(&app, "was looked at anew", is_seen).await?;
    let report = stage.place.wait(&report_of(&app), "still names the claim", is_stuck).await?;
    assert_eq!(since_of(&report), since, "known from before the restart");
    Ok(())
}

#[tokio::test]
async fn a_script_in_the_settings_decides_and_a_broken_one_touches_its_object_only() -> Result<()> {
    let stage = Stage::set().await?;
    let parameters = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm"},
        "data": {"controller.resource.health.persist": "true"},
    });
    stage.place.apply(&parameters).await?;
    let conf = objects::config_map("conf", &[("state", "bad")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[conf, objects::service("web", 80)]))])?;
    let app = stage.application("lua", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let is = |status: &'static str| move |live: &Value| live["status"]["health"]["status"] == status;
    let live = stage.place.wait(&app, "is Healthy", is("Healthy")).await?;
    assert_eq!(live["status"]["resourceHealthSource"].as_str().unwrap_or_default(), "");

    let script = "local hs = {}\nif obj.data.state == 'bad' then\n  hs.status = 'Degraded'\n  hs.message = 'state is ' .. obj.data.state\nelse\n  hs.status = 'Healthy'\nend\nreturn hs";
    stage.place.apply(&settings(&json!({"resource.customizations.health.ConfigMap": script}))).await?;
    let live = stage.place.wait(&app, "is Degraded", is("Degraded")).await?;
    assert!(message(&live).contains("state is bad"), "{}", message(&live));
    let health_of = |live: &Value, name: &str| {
        let all = live["status"]["resources"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["name"] == name).map(|one| one["health"].clone()).unwrap_or_default()
    };
    assert_eq!(health_of(&live, "conf"), json!({"status": "Degraded", "message": "state is bad"}));

    // Keys of a ConfigMap cannot hold a `*`: patterns stand in the older form only.
    let older =
        json!({"resource.customizations": "Config*:\n  health.lua: |\n    return obj.nothing.here\n"});
    stage.place.apply(&settings(&older)).await?;
    let live = stage.place.wait(&app, "is Unknown", is("Unknown")).await?;
    assert_eq!(health_of(&live, "conf")["status"], "Unknown");
    assert_eq!(health_of(&live, "web")["status"], "Healthy", "the other object is what it was");
    assert_eq!(live["status"]["sync"]["status"], "Synced");

    stage.place.apply(&settings(&json!({"url": "https://example.com"}))).await?;
    stage.place.wait(&app, "is Healthy again", is("Healthy")).await?;
    Ok(())
}

#[tokio::test]
async fn a_promised_secret_that_is_not_there_is_told() -> Result<()> {
    let stage = Stage::set().await?;
    stage.place.apply(&objects::crd("bitnami.com", "SealedSecret", &json!({"type": "object"}))).await?;
    let sealed = objects::custom("bitnami.com", "SealedSecret", "db", &json!({}));
    stage.repo.commit(&[("app/sealed.yaml", objects::manifests(std::slice::from_ref(&sealed)))])?;
    let app = stage.application("promise", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let status = json!({"conditions": [{"type": "Synced", "status": "True"}], "observedGeneration": 1});
    let live = stage.place.patch_status_as("sealed-secrets", &sealed, &status).await?;
    let says = |words: &'static str| move |live: &Value| message(live).contains(words);
    let told = stage.place.wait(&app, "misses the Secret", says("does not exist")).await?;
    assert_ne!(told["status"]["health"]["status"], "Healthy");

    let mut secret = objects::secret("db", &[("password", "canary")]);
    secret["metadata"]["ownerReferences"] = json!([{
        "apiVersion": sealed["apiVersion"], "kind": "SealedSecret", "name": "db", "uid": live["metadata"]["uid"],
    }]);
    stage.place.apply_as("controller", &secret).await?;
    let is_well = |live: &Value| live["status"]["health"]["status"] == "Healthy";
    let told = stage.place.wait(&app, "is Healthy", is_well).await?;
    assert!(!told.to_string().contains("canary"));
    edited_by_hand(&stage, &app, &secret).await?;

    // The controller also writes into a Secret of nobody that asks for it, and into no Secret of somebody else.
    let keeper = objects::config_map("keeper", &[]);
    stage.place.apply(&keeper).await?;
    let uid = stage.place.get(&keeper).await?.unwrap_or_default()["metadata"]["uid"].clone();
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": uid}]);
    let given_away = json!({"metadata": {"ownerReferences": owners}});
    stage.place.patch_as("somebody", &secret, &given_away).await?;
    stage.refresh(&app).await?;
    let is_theirs = |live: &Value| {
        let message = message(live);
        message.contains("belongs to") || message.contains("did not create it")
    };
    stage.place.wait(&app, "sees that it is not theirs", is_theirs).await?;
    Ok(())
}

/// Git has no line of the Secret: a condition says who edited it, until the controller writes it again.
async fn edited_by_hand(stage: &Stage, app: &Value, secret: &Value) -> Result<()> {
    let conditions = |live: &Value| {
        let all = live["status"]["conditions"].as_array().into_iter().flatten();
        let edits = all.filter(|one| one["type"] == "DerivedSecretWarning");
        edits.map(|one| one["message"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let password = |value: &str| json!({"data": {"password": STANDARD.encode(value)}});
    stage.place.patch_as("kubectl-edit", secret, &password("wryneck")).await?;
    let live = stage.place.wait(app, "tells the edit", |live| !conditions(live).is_empty()).await?;
    let told = conditions(&live).concat();
    for words in ["/db was edited by kubectl-edit at ", "(password)", "SealedSecret db makes it"] {
        ensure!(told.contains(words), "no {words:?} in {told}");
    }
    let said = live.to_string() + &stage.log()?;
    ensure!(!said.contains("wryneck") && !said.contains(&STANDARD.encode("wryneck")), "the value is told");
    stage.place.patch_as("controller", secret, &password("canary")).await?;
    stage.place.wait(app, "tells no edit", |live| conditions(live).is_empty()).await?;
    Ok(())
}

#[tokio::test]
async fn a_webhook_that_nobody_answers_is_told() -> Result<()> {
    let stage = Stage::set().await?;
    let kind = "admissionregistration.k8s.io_ValidatingWebhookConfiguration";
    stage.place.apply(&settings(&json!({format!("plumb.health.stuckAfter.{kind}"): "1s"}))).await?;
    let namespace = stage.place.name().to_owned();
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("guard-{namespace}")},
        "webhooks": [{
            "name": "guard.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "guard", "namespace": namespace}},
            "rules": [{"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}],
        }],
    });
    stage.repo.commit(&[("app/hook.yaml", objects::manifests(std::slice::from_ref(&hook)))])?;
    let app = stage.application("hooked", automated).await?;
    let is = |status: &'static str, words: &'static str| {
        move |live: &Value| live["status"]["health"]["status"] == status && message(live).contains(words)
    };
    let live = stage.place.wait(&app, "misses the Service", is("Degraded", "which does not exist")).await?;
    assert!(message(&live).contains("guard.example.com"), "{}", message(&live));
    assert_eq!(live["status"]["sync"]["status"], "Synced", "health does not touch that");

    // The Service and its pods are somebody else's: nothing of them wakes the app.
    stage.place.apply(&objects::service("guard", 443)).await?;
    stage.place.wait(&app, "misses the pods", is("Degraded", "no ready endpoint")).await?;
    stage.place.apply(&objects::deployment("guard", 1)).await?;
    stage.place.wait(&app, "is Healthy", is("Healthy", "")).await?;
    stage.place.delete(&hook).await?;
    Ok(())
}
