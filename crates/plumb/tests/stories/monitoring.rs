//! The alerts and the dashboard use only metrics and labels that plumb serves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use plumb_crd::install::alert_groups;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::outside::get;
use crate::stage::Stage;

/// The names of an expression, each with the labels that it selects or groups by.
fn metrics(expression: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let grouped: BTreeSet<String> = expression
        .match_indices("by (")
        .filter_map(|(at, _)| expression[at + 4..].split_once(')'))
        .flat_map(|(labels, _)| labels.split(',').map(|label| label.trim().to_owned()))
        .collect();
    for word in expression.split(|c| !is_name(c)) {
        if word.starts_with("plumb_") || word.starts_with("argocd_") {
            found.entry(word.to_owned()).or_default().extend(grouped.clone());
        }
    }
    for (name, labels) in &mut found {
        for (at, _) in expression.match_indices(&format!("{name}{{")) {
            let inner = expression[at + name.len() + 1..].split_once('}').map_or("", |(inner, _)| inner);
            let selected = inner.split(',').filter_map(|part| part.split_once(['=', '!']));
            labels.extend(selected.map(|(label, _)| label.trim().to_owned()));
        }
    }
    found
}

fn dashboard() -> Result<Vec<String>> {
    let text = include_str!("../../../../contrib/grafana/plumb.json");
    let dashboard: Value = serde_json::from_str(text)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    Ok(targets.filter_map(|target| target["expr"].as_str().map(str::to_owned)).collect())
}

fn alerts() -> Vec<String> {
    let groups = alert_groups();
    let rules = groups[0]["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["expr"].as_str().map(str::to_owned)).collect()
}

/// What the metrics endpoint declares, and the labels of each metric's samples.
fn served(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap_or_default();
            found.entry(name.to_owned()).or_default();
            if rest.ends_with(" histogram") {
                found.entry(format!("{name}_bucket")).or_default().insert("le".to_owned());
            }
        } else if let Some((name, rest)) = line.split_once('{') {
            let labels = rest.split("\",").filter_map(|part| part.split_once("=\""));
            found.entry(name.to_owned()).or_default().extend(labels.map(|(label, _)| label.to_owned()));
        }
    }
    found
}

#[tokio::test]
async fn every_expression_names_metrics_and_labels_that_plumb_serves() -> Result<()> {
    let stage = Stage::set().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage
        .application("measured", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    // A live edit that is reverted, and a source that cannot be rendered: each has a metric of its own.
    stage.place.patch_as("a-person", &map, &json!({"data": {"a": "2"}})).await?;
    stage.place.wait(&map, "is reverted", |map| map["data"]["a"] == "1").await?;
    let other = objects::manifests(&[objects::config_map("other", &[])]);
    stage.repo.commit(&[
        ("other/map.yaml", other.as_str()),
        ("broken/kustomization.yaml", "resources: [missing.yaml]"),
    ])?;
    let missing = stage.application("missing", |app| app["spec"]["source"]["path"] = json!("other")).await?;
    stage.until_sync(&missing, "OutOfSync").await?;
    let broken = stage.application("broken", |app| app["spec"]["source"]["path"] = json!("broken")).await?;
    stage.until_sync(&broken, "Unknown").await?;

    let address = stage.address("metrics").await?;
    let (code, text) = get(address, "/metrics").await?;
    ensure!(code == 200, "{text}");
    let served = served(&text);
    let expressions = [alerts(), dashboard()?].concat();
    ensure!(expressions.len() >= 20, "{expressions:?}");
    for expression in expressions {
        let used = metrics(&expression);
        ensure!(!used.is_empty(), "{expression} uses no metric of plumb");
        for (name, labels) in used {
            let known =
                served.get(&name).with_context(|| format!("{expression}: {name} is not served\n{text}"))?;
            // A counter without an event yet has no sample that would show its labels.
            let missing: Vec<_> = labels.difference(known).collect();
            ensure!(known.is_empty() || missing.is_empty(), "{expression}: {name} has no {missing:?}");
        }
    }
    Ok(())
}
