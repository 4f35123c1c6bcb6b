//! What Argo CD itself says about the recordings before and after the fixes for it. `PLUMB_VERDICTS` names the program
//! `verdicts` of `tools/argocd`; `PLUMB_OPENAPI` a document of the cluster, for the comparison of apps with server-side
//! apply.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_core::desired::Origin;
use plumb_core::drift::{DriftClass, Finding};
use plumb_core::fix::{Action, FixGoal, LastSync, Subject, is_shown_by_argo_cd, propose};
use plumb_core::object::Manifest;
use plumb_core::schema::SchemaSet;
use serde_json::{Value, json};

use crate::{files, judge_object, manifest, read};

/// The classes whose differences mean nothing, and that a fix ends without a sync. `AdmissionMutated` ends by comparisons
/// with dry runs, which this program does not make.
const HARMLESS: [DriftClass; 6] = [
    DriftClass::SchemaDefault,
    DriftClass::PhantomDefault,
    DriftClass::EquivalentValue,
    DriftClass::ControllerOwned,
    DriftClass::UnclaimedAddition,
    DriftClass::UnstableRender,
];

/// An object that differs from Git in nothing that matters.
struct Harmless {
    name: String,
    desired: Manifest,
    live: Manifest,
    findings: Vec<Finding>,
}

fn harmless(folder: &Path) -> Vec<Harmless> {
    let built_in = read(&folder.join("schemas.json"));
    let built_in = SchemaSet::from_openapi(built_in.as_array().expect("documents"));
    let mut found = Vec::new();
    for case in files(folder).iter().map(|file| read(file)) {
        let own = case["schemas"].as_array().into_iter().flatten();
        let schemas = own.fold(built_in.clone(), SchemaSet::with_document);
        for app in case["apps"].as_array().into_iter().flatten() {
            for object in app["objects"].as_array().expect("objects") {
                let verdict = judge_object(app, object, &schemas, true).verdict;
                let is_harmless = |finding: &Finding| HARMLESS.contains(&finding.class) && !finding.counts;
                let (Some(desired), Some(live)) = (manifest(&object["desired"]), manifest(&object["live"]))
                else {
                    continue;
                };
                if !verdict.findings.is_empty() && verdict.findings.iter().all(is_harmless) {
                    let name = format!("{} {}", case["id"].as_str().unwrap_or_default(), verdict.key);
                    found.push(Harmless { name, desired, live, findings: verdict.findings.to_vec() });
                }
            }
        }
    }
    found
}

/// The object in Git after the fixes, and the rules of the Application.
fn fixed(object: &Harmless) -> (Value, Vec<Value>) {
    let origin = Origin { source: 0, file: "x.yaml".to_owned(), line: 1, verbatim: true };
    let (mut desired, mut rules) = (object.desired.value().clone(), Vec::new());
    for finding in &object.findings {
        let others = object.findings.iter();
        let subject = Subject {
            finding,
            desired: Some(&object.desired),
            origin: Some(&origin),
            live: Some(&object.live),
            is_red_in_argo_cd: Some(true),
            keeps_live: false,
            keeper: None,
            kept: None,
            is_asked_for: false,
            is_alone: others.into_iter().all(|other| {
                other.class == finding.class || !is_shown_by_argo_cd(other, Some(&object.desired))
            }),
            last_sync: LastSync::Unknown,
        };
        for proposal in propose(&subject, FixGoal::ArgoCd) {
            match proposal.action {
                Action::Edit(change) => {
                    for operation in change.operations {
                        desired = operation.apply(&desired).expect("the place is there");
                    }
                }
                Action::Ignore(entry) => rules.push(entry.value()),
                Action::Through(..)
                | Action::Compare(_)
                | Action::Drop(_)
                | Action::Instruct(_)
                | Action::Nothing(_) => {}
            }
        }
    }
    (desired, rules)
}

/// What Argo CD says: `synced`, one per question.
#[expect(clippy::disallowed_methods, reason = "a test may ask another program")]
fn ask(program: &str, openapi: Option<&str>, questions: &[Value]) -> Vec<bool> {
    let mut command = Command::new(program);
    command.args(openapi.iter().flat_map(|file| ["-openapi", *file]));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program of PLUMB_VERDICTS");
    let lines: Vec<String> = questions.iter().map(|question| format!("{question}\n")).collect();
    let mut pipe = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || pipe.write_all(lines.concat().as_bytes()));
    let output = child.wait_with_output().expect("its answers");
    writer.join().expect("no panic").expect("it reads every question");
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("UTF-8");
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let answers: Vec<bool> = answers
        .map(|answer| {
            assert!(answer["error"].is_null(), "{answer}");
            answer["synced"] == true
        })
        .collect();
    assert_eq!(answers.len(), questions.len());
    answers
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may look for its program")]
fn argo_cd_shows_fixed_objects_as_synced() {
    let Ok(program) = std::env::var("PLUMB_VERDICTS") else {
        println!("skipped: PLUMB_VERDICTS is not set");
        return;
    };
    let openapi = std::env::var("PLUMB_OPENAPI").ok();
    let objects = harmless(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"));
    assert!(objects.len() > 10, "{}", objects.len());
    let modes: &[bool] = if openapi.is_some() { &[false, true] } else { &[false] };
    let mut still_red = Vec::new();
    for structured in modes {
        let question = |object: &Harmless, desired: &Value, rules: &[Value]| json!({"desired": desired, "live": object.live.value(), "ignoreDifferences": rules, "structured": structured});
        let before: Vec<Value> =
            objects.iter().map(|object| question(object, object.desired.value(), &[])).collect();
        let before = ask(&program, openapi.as_deref(), &before);
        let red: Vec<&Harmless> =
            objects.iter().zip(before).filter(|(_, synced)| !synced).map(|(object, _)| object).collect();
        let after: Vec<Value> = red
            .iter()
            .map(|object| {
                let (desired, rules) = fixed(object);
                question(object, &desired, &rules)
            })
            .collect();
        let after = ask(&program, openapi.as_deref(), &after);
        println!("structured {structured}: {} of {} objects are red before", red.len(), objects.len());
        let left = red.iter().zip(after).filter(|(_, synced)| !synced);
        still_red.extend(left.map(|(object, _)| format!("{} (structured: {structured})", object.name)));
    }
    assert_eq!(still_red, Vec::<String>::new());
}
