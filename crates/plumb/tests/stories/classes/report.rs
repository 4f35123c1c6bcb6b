//! What the reports of these stories are compared with.

use anyhow::Result;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A kind with a default, a quantity and values that can be zero, of a group that only this story has.
fn knob_definition(group: &str) -> Value {
    // The pattern by which controller-gen marks quantities.
    let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let schema = json!({"type": "object", "properties": {
        "mode": {"type": "string"},
        "level": {"type": "string", "default": "info"},
        "enabled": {"type": "boolean"},
        "size": {"type": "integer"},
        "cpu": {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": quantity, "x-kubernetes-int-or-string": true},
    }});
    objects::crd(group, "Knob", &schema)
}

/// Makes the kind and waits until it is served, which is a moment after its definition was applied.
pub(super) async fn serve_knobs(stage: &Stage) -> Result<String> {
    let group = format!("{}.example.com", stage.place.name());
    stage.place.apply(&knob_definition(&group)).await?;
    let one = objects::custom(&group, "Knob", "none", &json!({}));
    let served = async || stage.place.get(&one).await.is_ok();
    wait::until_seen(wait::LIMIT, "the kind is served", served, |done| *done).await?;
    Ok(group)
}

/// Waits until the app's report says exactly this, line by line in any order, and the app has this sync status;
/// then looks again from scratch, and it must say the same.
pub(super) async fn expect(stage: &Stage, app: &Value, status: &str, expected: &[&str]) -> Result<()> {
    expect_at_once(stage, app, status, expected).await?;
    stage.refresh_hard(app).await?;
    expect_at_once(stage, app, status, expected).await
}

pub(super) async fn expect_at_once(
    stage: &Stage,
    app: &Value,
    status: &str,
    expected: &[&str],
) -> Result<()> {
    let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": app["metadata"]["name"]}});
    let mut expected: Vec<String> = expected.iter().map(|&line| line.to_owned()).collect();
    expected.sort();
    // An app about which there is nothing to say has no report, which no watch tells.
    let said = async || stage.place.get(&report).await.map(|report| lines(&report.unwrap_or_default()));
    let what = format!("{} is told as {expected:#?}", app["metadata"]["name"]);
    let is_it = |said: &Result<Vec<String>>| said.as_ref().is_ok_and(|said| *said == expected);
    wait::until_seen(wait::LIMIT, &what, said, is_it).await??;
    stage.until_sync(app, status).await?;
    Ok(())
}

/// What a report says, one line for a finding: `ConfigMap/conf LiveEdit! /data/a /data/b`, with `!` if it counts.
/// What the server fills in for its own kinds is left out: it changes with the server's version.
pub(super) fn lines(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let is_custom =
        |finding: &Value| finding["group"].as_str().is_some_and(|group| group.ends_with(".example.com"));
    let mut lines: Vec<String> = findings
        .filter(|finding| finding["class"] != "SchemaDefault" || is_custom(finding))
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            let fields = finding["fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let mark = if finding["counts"] == true { "!" } else { "" };
            let what = format!("{}/{} {}{mark}", text("kind"), text("name"), text("class"));
            std::iter::once(what.as_str()).chain(fields).collect::<Vec<_>>().join(" ").trim_end().to_owned()
        })
        .collect();
    lines.sort();
    lines
}
