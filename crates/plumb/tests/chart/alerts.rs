//! The rule file of Prometheus is that of `plumb install`, and promtool accepts it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use expect_test::expect_file;
use plumb_crd::install::alert_groups;
use serde_json::json;

#[test]
fn the_rule_file_is_what_the_code_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus/alerts.yaml");
    expect_file![file].assert_eq(&plumb_crd::yaml::to_yaml(&json!({"groups": alert_groups()})));
}

#[test]
fn every_alert_fires_when_it_should_and_not_before() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus");
    let promtool = |words: &[&str]| {
        Command::new("promtool").args(words).current_dir(&folder).stdin(Stdio::null()).output()
    };
    let Ok(checked) = promtool(&["check", "rules", "alerts.yaml"]) else {
        return plumb_testkit::skipped("PROMTOOL", "install promtool (Debian: prometheus)");
    };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let tested = promtool(&["test", "rules", "alerts_test.yaml"]).expect("it just ran");
    let said =
        String::from_utf8_lossy(&tested.stdout).into_owned() + &String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{said}");
    // Each alert has a test.
    let tests = include_str!("../../../../contrib/prometheus/alerts_test.yaml");
    for rule in alert_groups()[0]["rules"].as_array().expect("rules") {
        let name = rule["alert"].as_str().expect("a name");
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} has no test");
    }
    Ok(())
}
