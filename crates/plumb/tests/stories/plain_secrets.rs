//! Secrets that Git has in plain text, and Secrets that Git does not have at all.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{Timestamp, ToSpan as _};
use plumb_testkit::objects;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::stage::Stage;

const VALUE: &str = "wryneck-in-plain-text";

fn conditions<'live>(live: &'live Value, kind: &str) -> Vec<&'live str> {
    let all = live["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(|one| one["type"] == kind).filter_map(|one| one["message"].as_str()).collect()
}

#[tokio::test]
async fn a_plain_secret_is_a_warning_or_refused() -> Result<()> {
    let stage = Stage::set().await?;
    let secret = objects::secret("db", &[("password", VALUE)]);
    let refusing = objects::annotated(objects::app_project("strict"), "plumb.dev/plain-secrets", "refuse");
    stage.place.apply(&refusing).await?;
    let map = objects::config_map("beside", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[secret.clone(), map.clone()]))])?;
    let app = stage
        .application("plain-strict", |app| {
            app["spec"]["project"] = json!("strict");
            app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
        })
        .await?;
    let is_refused = |live: &Value| {
        live["status"]["operationState"]["phase"] == "Failed"
            && !conditions(live, "InvalidSpecError").is_empty()
    };
    let live = stage.place.wait(&app, "is refused", is_refused).await?;
    let said = live["status"].to_string();
    ensure!(said.contains("db (password)") && said.contains("plumb seal"), "{said}");
    ensure!(!said.contains(VALUE), "{said}");
    ensure!(
        stage.place.get(&secret).await?.is_none() && stage.place.get(&map).await?.is_none(),
        "it was synced"
    );

    // Only who may write the project can allow it.
    let allowing = objects::annotated(objects::app_project("strict"), "plumb.dev/plain-secrets", "warn");
    stage.place.apply(&allowing).await?;
    stage
        .place
        .wait(&app, "has a warning", |live| !conditions(live, "PlainSecretWarning").is_empty())
        .await?;
    stage.plumb(&["app", "sync", "plain-strict"])?;
    let live = stage.until_sync(&app, "Synced").await?;
    assert_eq!(conditions(&live, "InvalidSpecError"), Vec::<&str>::new());
    stage.place.wait(&secret, "is there", |live| live["data"]["password"].is_string()).await?;
    ensure!(!stage.log()?.contains(VALUE));
    // The doctor reads it from the report.
    let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "plain-strict"}});
    let names_it = |report: &Value| report["plainSecrets"][0]["name"] == "db";
    stage.place.wait(&report, "names the Secret", names_it).await?;
    let shown = stage.plumb(&["doctor", "--app", "plain-strict"])?;
    ensure!(shown.contains("SECRETS WITH THEIR VALUES IN GIT (1)") && !shown.contains(VALUE), "{shown}");
    let shown = stage.plumb(&["doctor", "--secrets"])?;
    let place = stage.place.name();
    let command =
        format!("kubectl -n {place} get secret db -o yaml | plumb seal -n {place} > db.sealed.yaml");
    ensure!(shown.contains(&command) && !shown.contains(VALUE), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_hook_without_a_name_is_refused_too() -> Result<()> {
    let stage = Stage::set().await?;
    let refusing = objects::annotated(objects::app_project("strict"), "plumb.dev/plain-secrets", "refuse");
    stage.place.apply(&refusing).await?;
    let mut hook = objects::secret("x", &[("password", VALUE)]);
    hook["metadata"] =
        json!({"generateName": "later-", "annotations": {"argocd.argoproj.io/hook": "PreSync"}});
    let map = objects::config_map("beside", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[hook, map.clone()]))])?;
    let app = stage
        .application("unnamed-hook", |app| {
            app["spec"]["project"] = json!("strict");
            app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
        })
        .await?;
    let is_over = |live: &Value| {
        let phase = &live["status"]["operationState"]["phase"];
        phase == "Failed" || phase == "Succeeded"
    };
    let live = stage.place.wait(&app, "is over", is_over).await?;
    assert_eq!(live["status"]["operationState"]["phase"], "Failed");
    let said = live["status"]["operationState"].to_string();
    ensure!(said.contains("has plain values in the sources (password)") && !said.contains(VALUE), "{said}");
    let secrets = stage.place.list("v1", "Secret", "").await?;
    ensure!(!secrets.iter().any(|(name, _)| name.starts_with("later-")), "it was created");
    ensure!(stage.place.get(&map).await?.is_none(), "it was synced");
    Ok(())
}

#[tokio::test]
async fn a_secret_that_git_does_not_know_is_named_with_its_users() -> Result<()> {
    let stage = Stage::set().await?;
    let secret = objects::secret("by-hand", &[("password", VALUE)]);
    stage.place.apply_as("kubectl-create", &secret).await?;
    stage.place.apply_as("kubectl-create", &objects::secret("unused", &[("password", VALUE)])).await?;
    let mut web = objects::deployment("web", 1);
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "by-hand"}}]);
    web["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "API_TOKEN", "value": "q9X2mB7vK4pL8wZ1nR5t"}]);
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[web]))])?;
    let app =
        stage.application("unknown-shop", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let is_well = |live: &Value| live["status"]["health"]["status"] == "Healthy";
    stage.place.wait(&app, "is Healthy", is_well).await?;

    let said = stage.plumb(&["doctor", "--secrets"])?;
    let place = stage.place.name();
    for words in [
        format!("Secret {place}/by-hand (password)"),
        "created by kubectl-create at ".to_owned(),
        format!("used by {place}/unknown-shop; pods web-"),
        format!(
            "kubectl -n {place} get secret by-hand -o yaml | plumb seal -n {place} > by-hand.sealed.yaml"
        ),
        "container ".to_owned(),
        "env.API_TOKEN looks like a random text under the name of a secret".to_owned(),
        format!("plumb seal -n {place} --name web --from-file API_TOKEN=- > web.sealed.yaml"),
    ] {
        ensure!(said.contains(&words), "no {words:?} in:\n{said}");
    }
    for never in [VALUE, "unused", "q9X2mB7v"] {
        ensure!(!said.contains(never), "{never} in:\n{said}");
    }
    let data: Value = serde_json::from_str(&stage.plumb(&["doctor", "--secrets", "-o", "json"])?)?;
    assert_eq!(data["unknown"][0]["externalSecret"]["spec"]["data"][0]["secretKey"], "password");
    let output = stage.plumb_says(&["doctor", "--secrets", "--app", "none"])?;
    ensure!(output.contains("no app matches"), "{output}");
    Ok(())
}

/// A TLS Secret whose certificate begins and ends so many days from now.
fn tls(name: &str, begins: i64, ends: i64) -> Result<Value> {
    let day = |days: i64| {
        let day = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).checked_add(days.days())?;
        let (month, of_month) = (day.month().unsigned_abs(), day.day().unsigned_abs());
        anyhow::Ok(rcgen::date_time_ymd(i32::from(day.year()), month, of_month))
    };
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = (day(begins)?, day(ends)?);
    let key = KeyPair::generate()?;
    let (certificate, key) = (params.self_signed(&key)?.pem(), key.serialize_pem());
    Ok(json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name},
        "data": {"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)}}))
}

#[tokio::test]
async fn certificates_are_named_before_they_end() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[objects::config_map("beside", &[])]))])?;
    let app = stage.application("ending", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let sealing =
        |secret| objects::labelled(secret, "sealedsecrets.bitnami.com/sealed-secrets-key", "active");
    for secret in [
        tls("soon", -100, 5)?,
        tls("later", -100, 100)?,
        tls("over", -100, -2)?,
        sealing(tls("older-key", -200, -20)?),
        sealing(tls("newer-key", -100, 5)?),
    ] {
        stage.place.apply_as("kubectl-create", &secret).await?;
    }
    let said = stage.plumb(&["doctor", "--secrets", "--app", "ending"])?;
    let place = stage.place.name();
    for words in [
        format!("Secret {place}/soon: a TLS certificate ends at "),
        format!("Secret {place}/over: a TLS certificate ended at "),
        format!("Secret {place}/newer-key: the newest sealing certificate ends at "),
    ] {
        ensure!(said.contains(&words), "no {words:?} in:\n{said}");
    }
    ensure!(!said.contains("/later") && !said.contains("older-key"), "{said}");
    Ok(())
}
