//! Agreement with Argo CD's decisions on permissions: recorded cases, one JSON object a line. They are not part of this
//! repository; where they are not to be found, this says "skipped".

#![expect(clippy::expect_used, reason = "a test says what it expects")]
use std::path::PathBuf;

use plumb_core::rbac::{AccessRules, AccessSettings, Caller, MatchMode, ProjectRole, ProjectRoles, Request};
use serde_json::{Map, Value};

/// Where plumb decides otherwise on purpose: the category, and why.
const DIFFERENCES: [(&str, &str); 1] = [("glob-quirk", "patterns with `*` in braces match what they say")];

#[expect(clippy::disallowed_methods, reason = "a test may look for its data; the core may not")]
fn cases() -> Option<Vec<Value>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var("PLUMB_SHARED").map_or_else(|_| workspace.join("../shared"), PathBuf::from);
    let lines = std::fs::read_to_string(shared.join("rbac/cases.jsonl")).ok()?;
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("a case is one line of JSON")).collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// The settings; where a case has the files of the `ConfigMap`, they are joined by the code under test.
fn settings(case: &Value) -> AccessSettings {
    let from_files = case["policyFiles"].as_object().map(|files| {
        let data = files.iter().map(|(name, file)| (name.clone(), text(file))).collect();
        AccessSettings::from_config(&data).expect("readable settings").policy
    });
    let defaults = AccessSettings::default();
    AccessSettings {
        policy: from_files.unwrap_or_else(|| text(&case["policy"])),
        default_role: text(&case["defaultRole"]),
        mode: MatchMode::from_setting(case["matchMode"].as_str().unwrap_or_default()),
        scopes: if case["scopes"].is_null() { defaults.scopes } else { texts(&case["scopes"]) },
    }
}

fn project(value: &Value) -> ProjectRoles {
    let roles = value["roles"].as_array().into_iter().flatten().map(|role| ProjectRole {
        name: text(&role["name"]),
        policies: texts(&role["policies"]),
        groups: texts(&role["groups"]),
    });
    ProjectRoles { project: text(&value["name"]), roles: roles.collect() }
}

fn caller(case: &Value) -> Caller {
    if case["anonymous"] == true {
        return Caller::Anonymous;
    }
    let mut claims = Map::from_iter([("sub".to_owned(), case["subject"].clone())]);
    if let Some(groups) = case.get("groups") {
        claims.insert("groups".to_owned(), groups.clone());
    }
    claims.extend(case["claims"].as_object().cloned().unwrap_or_default());
    Caller::Claims(claims)
}

fn decide(case: &Value) -> bool {
    let Ok(mut rules) = AccessRules::new(&settings(case)) else { return false };
    for value in case["projects"].as_array().into_iter().flatten() {
        rules.set_project(&project(value));
    }
    let word = |field: &str| case[field].as_str().unwrap_or_default();
    rules.allows(
        &caller(case),
        &Request { resource: word("resource"), action: word("action"), object: word("object") },
    )
}

#[test]
fn decisions_agree_with_the_recorded_ones() {
    let Some(cases) = cases() else {
        println!("skipped: no recorded cases (set PLUMB_SHARED to the folder that holds rbac/cases.jsonl)");
        return;
    };
    let mut wrong = Vec::new();
    let mut on_purpose = 0;
    for case in &cases {
        let expected = case["allowed"] == true && case["policyError"] != true;
        if decide(case) == expected {
            continue;
        }
        let category = case["category"].as_str().unwrap_or_default();
        println!("{} ({category}): recorded {expected}, ours {}: {case}", case["id"], !expected);
        if DIFFERENCES.iter().any(|(listed, _)| *listed == category) {
            on_purpose += 1;
        } else {
            wrong.push(&case["id"]);
        }
    }
    let agree = cases.len() - wrong.len() - on_purpose;
    println!("{agree} of {} agree, {on_purpose} differ on purpose", cases.len());
    assert!(wrong.is_empty(), "decided otherwise: {wrong:?}");
}
