//! The project's own cases of health: `corpus/health/*.cases`. A block starts with a version and a kind; each line
//! after it is a status (`none`: no opinion) and the object's own part as JSON. `#` starts a comment.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a test reads its data and says what it expects"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plumb_core::health::assess;
use plumb_core::object::Manifest;
use serde_json::{Value, json};

struct Case {
    place: String,
    api_version: String,
    kind: String,
    expected: String,
    object: Manifest,
}

fn texts(folder: &str, extension: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("a text"))
        })
        .collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (file, text) in texts("corpus/health", "cases") {
        let (mut api_version, mut kind) = (String::new(), String::new());
        for (number, line) in text.lines().enumerate() {
            let place = format!("{file}:{}", number + 1);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').expect("two words");
            if !rest.trim_start().starts_with('{') {
                (api_version, kind) = (word.to_owned(), rest.trim().to_owned());
                continue;
            }
            let mut object: Value =
                serde_json::from_str(rest.trim()).unwrap_or_else(|error| panic!("{place}: {error}"));
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            object["metadata"]["name"] = json!("it");
            cases.push(Case {
                place,
                api_version: api_version.clone(),
                kind: kind.clone(),
                expected: word.to_owned(),
                object: Manifest::new(object).expect("an object"),
            });
        }
    }
    cases
}

#[test]
fn every_case_is_judged_as_it_says() {
    let cases = cases();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let health = assess(&case.object);
            let status = health.as_ref().map_or("none", |health| health.status.as_str());
            let words = health.as_ref().map_or("", |health| health.message.as_str());
            (status != case.expected).then(|| {
                format!("{} {}: expected {}, is {status} ({words})", case.place, case.kind, case.expected)
            })
        })
        .collect();
    println!("{} of {} cases", cases.len() - wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// One kind's rule: its place, and the statuses that its clauses name.
struct Rule {
    place: String,
    groups: Vec<String>,
    kinds: Vec<String>,
    statuses: BTreeSet<String>,
}

fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for (file, text) in texts("src/health/rules", "rules") {
        let mut groups: Vec<String> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            match words.as_slice() {
                ["group", found @ ..] => groups = owned(found),
                ["kind", kinds @ ..] => rules.push(Rule {
                    place: format!("{file}:{}", number + 1),
                    groups: groups.clone(),
                    kinds: owned(kinds),
                    statuses: BTreeSet::from(["Progressing".to_owned()]),
                }),
                ["first", status, ..] | ["absent" | "empty" | "otherwise", status] | [status, "when", ..] => {
                    let rule = rules.last_mut().expect("a kind before its sentences");
                    if words[0] == "absent" {
                        // What is not said is `Progressing`; here it is said.
                        rule.statuses.remove("Progressing");
                    }
                    rule.statuses.insert((*status).to_owned());
                }
                _ => {}
            }
        }
    }
    rules
}

/// A rule needs a case for each of its statuses.
#[test]
fn every_rule_has_a_case_for_every_status_it_names() {
    let mut seen: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for case in cases() {
        let group = case.api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        seen.entry((group, case.kind)).or_default().insert(case.expected);
    }
    let mut missing = Vec::new();
    for rule in rules() {
        let is_of_rule = |(group, kind): &(String, String)| {
            let has_group = rule.groups.iter().any(|pattern| match pattern.strip_prefix('*') {
                Some(end) => group.ends_with(end),
                None => group == pattern,
            });
            has_group && rule.kinds.iter().any(|pattern| pattern == "*" || pattern == kind)
        };
        let found: BTreeSet<&String> =
            seen.iter().filter(|(key, _)| is_of_rule(key)).flat_map(|(_, statuses)| statuses).collect();
        for status in &rule.statuses {
            // A status of the general reading, or none, is not the rule's own.
            if !matches!(status.as_str(), "general" | "none" | "generation") && !found.contains(status) {
                missing.push(format!("{} {}: no case is {status}", rule.place, rule.kinds.join(" ")));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
