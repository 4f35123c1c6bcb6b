//! Agreement with the health that Argo CD gives: recorded cases, one JSON object a line. They are not part of
//! this repository; where they are not to be found, this says "skipped".

#![expect(clippy::expect_used, reason = "a test says what it expects")]
use std::collections::BTreeMap;
use std::path::PathBuf;

use plumb_core::health::{Health, HealthStatus, assess, general_reading, standing};
use plumb_core::object::Manifest;
use serde_json::Value;

/// Of all kinds, so many in a thousand must agree on the status.
const AGREEMENT_PER_MILLE: usize = 970;

/// So many the general reading must get right without any rule.
const GENERAL_AGREEMENT_PER_MILLE: usize = 800;

/// Kubernetes' own kinds must agree without exception.
const BUILT_IN: [&str; 4] = [
    "builtin",
    "batch/CronJob",
    "policy/PodDisruptionBudget",
    "apiextensions.k8s.io/CustomResourceDefinition",
];

struct Case {
    dir: String,
    name: String,
    object: Value,
    expected: String,
    message: String,
}

#[expect(clippy::disallowed_methods, reason = "a test may look for its data; the core may not")]
fn cases() -> Option<Vec<Case>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var("PLUMB_SHARED").map_or_else(|_| workspace.join("../shared"), PathBuf::from);
    let lines = std::fs::read_to_string(shared.join("health/cases.jsonl")).ok()?;
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    Some(
        lines
            .lines()
            .map(|line| {
                let mut case: Value = serde_json::from_str(line).expect("a case is one line of JSON");
                Case {
                    dir: text(&case, "dir"),
                    name: text(&case, "case"),
                    expected: text(&case, "status"),
                    message: text(&case, "message"),
                    object: case["object"].take(),
                }
            })
            .collect(),
    )
}

/// The recorded answers are those of each kind's own rule, asked before the question of a deletion under way.
fn judge(object: &Value) -> (String, String) {
    let manifest = Manifest::new(object.clone()).expect("every recorded object is one");
    shown(standing(&manifest))
}

fn shown(health: Option<Health>) -> (String, String) {
    match health {
        Some(health) => (health.status.to_string(), health.message),
        None => ("none".to_owned(), String::new()),
    }
}

#[test]
fn statuses_agree_with_the_recorded_ones() {
    let Some(cases) = cases() else {
        println!("skipped: no recorded cases (set PLUMB_SHARED to the folder that holds health/cases.jsonl)");
        return;
    };
    let mut wrong = Vec::new();
    let mut wrong_built_in = Vec::new();
    let mut by_kind: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for case in &cases {
        assert!(HealthStatus::from_word(&case.expected).is_some(), "{}: {}", case.name, case.expected);
        let (status, message) = judge(&case.object);
        let agrees = status == case.expected;
        let counts = by_kind.entry(&case.dir).or_default();
        counts.0 += usize::from(agrees);
        counts.1 += 1;
        if !agrees {
            let line = format!(
                "{} {}: recorded {} ({}), ours {status} ({message})",
                case.dir, case.name, case.expected, case.message
            );
            if BUILT_IN.contains(&case.dir.as_str()) {
                wrong_built_in.push(line.clone());
            }
            wrong.push(line);
        }
    }
    let n_asked_in_full = cases
        .iter()
        .filter(|case| {
            let manifest = Manifest::new(case.object.clone()).expect("every recorded object is one");
            shown(assess(&manifest)).0 == case.expected
        })
        .count();
    println!("{} of {} agree", cases.len() - wrong.len(), cases.len());
    println!("{n_asked_in_full} of {} with deletions under way (tests/health_disagreements.md)", cases.len());
    println!("{}", wrong.join("\n"));
    assert!(wrong_built_in.is_empty(), "built-in kinds disagree:\n{}", wrong_built_in.join("\n"));
    assert!(
        (cases.len() - wrong.len()) * 1000 >= cases.len() * AGREEMENT_PER_MILLE,
        "{} of {} disagree:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// How far the general reading gets without any rule. An object without a hint counts as `Progressing` here,
/// which is what every rule says of a kind that has not reported yet.
#[test]
fn the_general_reading_alone() {
    let Some(cases) = cases() else {
        println!("skipped: no recorded cases");
        return;
    };
    let custom: Vec<&Case> = cases.iter().filter(|case| !BUILT_IN.contains(&case.dir.as_str())).collect();
    let n_agree = custom
        .iter()
        .filter(|case| {
            let manifest = Manifest::new(case.object.clone()).expect("every recorded object is one");
            let status = general_reading(&manifest).map_or(HealthStatus::Progressing, |health| health.status);
            status.as_str() == case.expected
        })
        .count();
    println!("general reading: {n_agree} of {}", custom.len());
    assert!(n_agree * 1000 >= custom.len() * GENERAL_AGREEMENT_PER_MILLE, "{n_agree} of {}", custom.len());
}
