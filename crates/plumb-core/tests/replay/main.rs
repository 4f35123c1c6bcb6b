//! Judges recordings of a real cluster (Kubernetes 1.36): every drift class in both directions. `corpus/` has small ones;
//! more can be put where `PLUMB_RECORDINGS` points.
//!
//! A recording has, per object, what Git asked for, what the cluster had (with its `managedFields`), the results of a
//! dry-run and of a second render, and the other apps, policies and autoscalers.

#![expect(clippy::expect_used, clippy::panic, reason = "a recording that cannot be read fails the test")]
#![expect(clippy::print_stdout, reason = "what a failed case looks like is shown")]

mod argo_cd;

use std::path::{Path, PathBuf};

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, Attempt, Autoscaler, Claim, DryRun, Evidence, Facts, FailureCause, Finding,
    FinishedRun, HealRecord, LiveOwner, Mutator, Outcome, Previous, Question, SecondRender, Verdict,
    VerdictStatus, judge, rule_groups,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{FieldPath, Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use serde_json::Value;

struct Judged {
    verdict: Verdict,
    asked: Vec<Question>,
}

fn failure(status: &Value) -> ApiFailure {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].as_array().into_iter().flatten().map(|cause| FailureCause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    });
    ApiFailure {
        code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500),
        reason: text(status, "reason"),
        message: text(status, "message"),
        causes: causes.collect(),
    }
}

fn manifest(value: &Value) -> Option<Manifest> {
    (!value.is_null()).then(|| Manifest::new(value.clone()).expect("an object"))
}

fn judge_object(app: &Value, object: &Value, schemas: &SchemaSet, knows_previous: bool) -> Judged {
    let key: Vec<String> = serde_json::from_value(object["key"].clone()).expect("a key");
    let key = ObjectKey::new(
        key[0].clone(),
        key[1].clone(),
        Some(key[2].clone()).filter(|namespace| !namespace.is_empty()),
        key[3].clone(),
    );
    let now = "2030-01-01T00:00:00Z".parse().expect("a time");
    let desired = manifest(&object["desired"]).map(|manifest| {
        let is_hook = manifest.annotation("argocd.argoproj.io/hook").is_some();
        let options = ObjectOptions { is_hook, ..ObjectOptions::default() };
        DesiredObject { key: key.clone(), manifest, options, origin: None }
    });
    let live = manifest(&object["live"]);
    let (dry_run, second, live_at, previous) = (
        manifest(&object["dry_run"]),
        manifest(&object["second"]),
        manifest(&object["live_at"]),
        manifest(&object["previous_manifest"]),
    );
    let dry_fail = (!object["dry_fail"].is_null()).then(|| failure(&object["dry_fail"]));
    let attempt = (!object["attempt"].is_null()).then(|| failure(&object["attempt"]));
    let pairs = |field: &str| -> Vec<(String, String)> {
        serde_json::from_value(object[field].clone()).unwrap_or_default()
    };
    let name = app["name"].as_str().expect("a name");
    let claims: Vec<String> = serde_json::from_value(object["claims"].clone()).unwrap_or_default();
    let claims: Vec<Claim<'_>> = claims.iter().map(|app| Claim { app, manifest: None }).collect();
    let autoscalers: Vec<Autoscaler> = pairs("autoscalers")
        .into_iter()
        .map(|(kind, name)| Autoscaler { kind, name, scales_to_zero: false })
        .collect();
    let mutators: Vec<Mutator> =
        pairs("mutators").into_iter().map(|(kind, name)| Mutator { kind, name }).collect();
    let heals = if object["tug"] == true {
        vec![HealRecord {
            field: FieldPath::from_pointer("/spec/replicas"),
            healed_at: vec![now; 5],
            stopped: false,
        }]
    } else {
        Vec::new()
    };
    let facts = Facts {
        app: name,
        owner: match object["owner"].as_str() {
            Some(owner) if owner == name => LiveOwner::ThisApp,
            Some(owner) => LiveOwner::App(owner.to_owned()),
            None => LiveOwner::Nobody,
        },
        previous: match object["previous"].as_str() {
            Some("same") if knows_previous => Previous::Same,
            Some("changed") if knows_previous => Previous::Changed(previous.as_ref()),
            _ => Previous::Unknown,
        },
        attempt: attempt.as_ref().map_or(Attempt::None, Attempt::Refused),
        prune: app["prune"] == true,
        claims: &claims,
        autoscalers: &autoscalers,
        mutators: &mutators,
        heals: &heals,
        finished: (object["finished"] == true).then_some(FinishedRun {
            at: Some(now),
            succeeded: true,
            same_desired: true,
        }),
        render_may_vary: object["vary"] == true,
        ..Facts::default()
    };
    let rules = IgnoreRules::default();
    let mut evidence = Evidence {
        key: &key,
        desired: desired.as_ref(),
        live: live.as_ref(),
        schemas,
        rules: &rules,
        options: CompareOptions { strict: app["strict"] == true, ..CompareOptions::default() },
        facts,
        answers: Answers::default(),
        now,
    };
    let mut asked = Vec::new();
    loop {
        match judge(&evidence) {
            Outcome::Settled(verdict) => return Judged { verdict: *verdict, asked },
            Outcome::Ask(questions) => {
                assert!(!questions.is_empty());
                for question in questions {
                    assert!(!asked.contains(&question), "{key}: {question:?} asked twice");
                    match &question {
                        Question::DryRun => {
                            evidence.answers.dry_run = Some(match (&dry_run, &dry_fail) {
                                (Some(object), _) => DryRun::Object(object),
                                (None, Some(failure)) => DryRun::Refused(failure),
                                (None, None) => DryRun::Unavailable,
                            });
                        }
                        Question::SecondRender => {
                            evidence.answers.second_render = Some(SecondRender::Object(second.as_ref()));
                        }
                        Question::LiveAt { .. } => evidence.answers.live_at = Some(live_at.as_ref()),
                    }
                    asked.push(question);
                }
            }
        }
    }
}

fn word(verdict: &Verdict) -> String {
    let prune = if verdict.requires_pruning { " prune" } else { "" };
    match &verdict.status {
        VerdictStatus::Synced => "Synced".to_owned(),
        VerdictStatus::OutOfSync => format!("OutOfSync{prune}"),
        VerdictStatus::NotCompared(_) => "absent".to_owned(),
    }
}

fn covers(named: &str, wanted: &str) -> bool {
    let (parent, last) = wanted.rsplit_once('/').unwrap_or(("", wanted));
    named == wanted
        || named.starts_with(&format!("{wanted}/"))
        || (last.bytes().all(|byte| byte.is_ascii_digit()) && named == parent)
}

fn one_or_many(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_else(|| vec![value.clone()])
}

fn problems(case: &Value, app: &str, many: bool, judged: &Judged) -> Vec<String> {
    let verdict = &judged.verdict;
    let short = format!("{}/{}", verdict.key.kind, verdict.key.name);
    let long = format!("{app}:{short}");
    let mut problems = Vec::new();
    let expected = &case["expect"][if many { &long } else { &short }];
    if !expected.is_null() {
        let word = word(verdict);
        let ok = one_or_many(expected).iter().any(|wanted| {
            wanted == &Value::from(word.as_str())
                || (wanted == "OutOfSync" && word.starts_with("OutOfSync"))
                || (wanted == "-" && word == "absent")
        });
        if !ok {
            problems.push(format!("{long}: want {expected}, got {word}"));
        }
    }
    let mut wanted = case["drift"][&long].clone();
    if wanted.is_null() && !many {
        wanted = case["drift"][&short].clone();
    }
    if wanted == "none" && !verdict.findings.is_empty() {
        problems.push(format!("{long}: want no finding"));
    }
    for wanted in one_or_many(&wanted).iter().filter(|wanted| wanted.is_object()) {
        let classes = one_or_many(&wanted["class"]);
        let hits: Vec<_> =
            verdict.findings.iter().filter(|f| classes.contains(&Value::from(f.class.name()))).collect();
        if hits.is_empty() {
            problems.push(format!("{long}: want {}", wanted["class"]));
        }
        for field in wanted["fields"].as_array().into_iter().flatten() {
            let field = field.as_str().unwrap_or_default();
            if !hits.iter().flat_map(|f| &f.fields).any(|named| covers(&named.to_string(), field)) {
                problems.push(format!("{long}: {field} not named"));
            }
        }
        for text in wanted["says"].as_array().into_iter().flatten() {
            if !hits.iter().any(|f| format!("{f:?}").contains(text.as_str().unwrap_or_default())) {
                problems.push(format!("{long}: does not say {text}"));
            }
        }
        for text in wanted["hides"].as_array().into_iter().flatten() {
            if format!("{:?}", verdict.findings).contains(text.as_str().unwrap_or_default()) {
                problems.push(format!("{long}: says {text}"));
            }
        }
    }
    problems
}

/// Cases whose expected verdict comes after a sync or a heal; the recording has the state before it.
const BEFORE_SYNC: [&str; 5] = [
    "e-moves-between-apps",
    "l-client-apply-leftover-synced",
    "m-strategy-switch",
    "r-port-edited-healed",
    "t-healed-once",
];

#[expect(clippy::disallowed_methods, reason = "a test may read its recordings")]
fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a readable file")).expect("JSON")
}

/// Judges every object of a case, with and without (as after a restart) the last apply.
fn replay(case: &Value, schemas: &SchemaSet, verbose: bool) -> (usize, usize, usize) {
    let (mut objects, mut asked, mut failed) = (0, 0, 0);
    let apps = case["apps"].as_array().expect("apps");
    for knows_previous in [true, false] {
        for app in apps {
            for object in app["objects"].as_array().expect("objects") {
                let judged = judge_object(app, object, schemas, knows_previous);
                let problems = problems(case, app["name"].as_str().expect("a name"), apps.len() > 1, &judged);
                for finding in judged.verdict.findings.iter() {
                    assert!(is_of_its_rule(finding), "{}: {finding:?}", case["id"]);
                }
                objects += 1;
                asked += usize::from(!judged.asked.is_empty());
                failed += usize::from(!problems.is_empty());
                if !problems.is_empty() || verbose {
                    show(case, &judged, knows_previous, &problems);
                }
            }
        }
    }
    (objects, asked, failed)
}

/// Is the class one that the rules of the finding can give?
fn is_of_its_rule(finding: &Finding) -> bool {
    finding.rule.split(", ").all(|name| {
        let groups = rule_groups();
        let mut rules = groups.iter().flat_map(|group| &group.rules);
        rules.any(|rule| rule.name == name && rule.classes.contains(&finding.class))
    })
}

fn show(case: &Value, judged: &Judged, knows_previous: bool, problems: &[String]) {
    println!("{} (previous known: {knows_previous}) asked {:?}", case["id"], judged.asked);
    println!("  {:?} {:?}", judged.verdict.status, judged.verdict.advice);
    for problem in problems {
        println!("  PROBLEM {problem}");
    }
    for f in judged.verdict.findings.iter() {
        let fields: Vec<String> = f.fields.iter().map(ToString::to_string).collect();
        println!(
            "  {} counts={} {} actor={:?} since={:?}",
            f.class,
            f.counts,
            fields.join(" "),
            f.actor,
            f.since
        );
        for line in &f.evidence {
            println!("      {line}");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    // Other corpora have their own folders beside the recordings.
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Cases in which only the last apply tells a removal from a line that is new in Git.
const NEEDS_MEMORY: [&str; 3] = [
    "phantom-default-true-dropped-here",
    "phantom-default-pointer-false-removed",
    "phantom-default-empty-key-of-map-removed",
];

#[test]
fn the_corpus_is_judged_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let built_in = read(&folder.join("schemas.json"));
    let built_in = SchemaSet::from_openapi(built_in.as_array().expect("documents"));
    let (mut objects, mut asked, mut failed) = (0, 0, 0);
    for file in files(&folder) {
        let case = read(&file);
        if case["apps"].is_null() {
            continue;
        }
        let own = case["schemas"].as_array().into_iter().flatten();
        let schemas = own.fold(built_in.clone(), SchemaSet::with_document);
        let mut case = case;
        if NEEDS_MEMORY.iter().any(|id| case["id"] == *id) {
            // Without it the object still counts; only the class differs.
            let known = replay_with(&case, &schemas, true);
            assert_eq!(known, 0, "{}", case["id"]);
            case["drift"] = Value::Null;
        }
        let (n, a, f) = replay(&case, &schemas, false);
        objects += n;
        asked += a;
        failed += f;
    }
    println!("{objects} objects judged, {asked} asked something, {failed} failed");
    assert!(objects > 60);
    assert_eq!(failed, 0);
}

fn replay_with(case: &Value, schemas: &SchemaSet, knows_previous: bool) -> usize {
    let apps = case["apps"].as_array().expect("apps");
    let mut failed = 0;
    for app in apps {
        for object in app["objects"].as_array().expect("objects") {
            let judged = judge_object(app, object, schemas, knows_previous);
            let problems = problems(case, app["name"].as_str().expect("a name"), apps.len() > 1, &judged);
            failed += usize::from(!problems.is_empty());
            if !problems.is_empty() {
                show(case, &judged, knows_previous, &problems);
            }
        }
    }
    failed
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may look for its recordings")]
fn recordings_are_judged_as_expected() {
    let Ok(folder) = std::env::var("PLUMB_RECORDINGS") else {
        println!("skipped: PLUMB_RECORDINGS is not set");
        return;
    };
    let only = std::env::var("PLUMB_RECORDING").unwrap_or_default();
    let folder = Path::new(&folder);
    let (mut objects, mut asked, mut failed) = (0, 0, 0);
    for file in files(&folder.join("out")).iter().filter(|file| file.to_string_lossy().contains(&only)) {
        let case = read(file);
        if BEFORE_SYNC.iter().any(|id| case["id"] == *id) && only.is_empty() {
            continue;
        }
        let documents: Vec<Value> = case["docs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| read(&folder.join("docs").join(name.as_str().expect("a name"))))
            .collect();
        let (n, a, f) = replay(&case, &SchemaSet::from_openapi(&documents), !only.is_empty());
        objects += n;
        asked += a;
        failed += f;
    }
    println!("{objects} objects judged, {asked} asked something, {failed} failed");
    assert_eq!(failed, 0);
}

/// The operations of a finding's patch; `None` if it is not a patch of a document.
fn operations(patch: &str) -> Option<Vec<Value>> {
    let mut lines = patch.lines();
    lines.next().filter(|line| line.starts_with("# JSON patch of "))?;
    Some(
        lines
            .map(|line| serde_json::from_str(line.trim_start_matches("- ")).expect("an operation"))
            .collect(),
    )
}

/// Carries out one operation of RFC 6902, as far as findings use them.
fn carry_out(document: &mut Value, operation: &Value) {
    let pointer = |field: &str| operation[field].as_str().expect("a pointer").to_owned();
    let path = pointer("path");
    match operation["op"].as_str() {
        Some("remove") => drop(take(document, &path)),
        Some("move") => {
            let value = take(document, &pointer("from"));
            put(document, &path, value);
        }
        Some("replace") => {
            *document.pointer_mut(&path).expect("it is there") = operation["value"].clone();
        }
        Some("add") => put(document, &path, operation["value"].clone()),
        other => panic!("{other:?}"),
    }
}

fn take(document: &mut Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("not the root");
    match document.pointer_mut(parent).expect("it is there") {
        Value::Array(items) => items.remove(name.parse().expect("a position")),
        Value::Object(map) => map.remove(&name.replace("~1", "/").replace("~0", "~")).expect("it is there"),
        other => panic!("{other}"),
    }
}

fn put(document: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').expect("not the root");
    match document.pointer_mut(parent).expect("its parent is there") {
        Value::Array(items) if name == "-" => items.push(value),
        Value::Object(map) => drop(map.insert(name.replace("~1", "/").replace("~0", "~"), value)),
        other => panic!("{other}"),
    }
}

#[test]
fn an_offered_patch_ends_its_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let built_in = read(&folder.join("schemas.json"));
    let built_in = SchemaSet::from_openapi(built_in.as_array().expect("documents"));
    let (mut offered, mut without) = (std::collections::BTreeMap::new(), Vec::new());
    for file in files(&folder) {
        let case = read(&file);
        let own = case["schemas"].as_array().into_iter().flatten();
        let schemas = own.fold(built_in.clone(), SchemaSet::with_document);
        for app in case["apps"].as_array().into_iter().flatten() {
            for object in app["objects"].as_array().expect("objects") {
                for finding in judge_object(app, object, &schemas, true).verdict.findings.iter() {
                    assert!(!finding.fix.text.is_empty(), "{}: {finding:?}", case["id"]);
                    let Some(patch) = &finding.fix.patch else {
                        without.push(finding.class.name());
                        continue;
                    };
                    *offered.entry(finding.class.name()).or_insert(0) += 1;
                    let Some(operations) = operations(patch) else {
                        let pointers: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
                        let named = pointers.iter().all(|pointer| patch.contains(&format!("\"{pointer}\"")));
                        assert!(patch.contains("ignoreDifferences:") && named, "{patch}");
                        continue;
                    };
                    let mut edited = object.clone();
                    for operation in &operations {
                        carry_out(&mut edited["desired"], operation);
                    }
                    // The recorded dry-run is of another document.
                    edited["dry_run"] = Value::Null;
                    let after = judge_object(app, &edited, &schemas, true).verdict;
                    let same = after.findings.iter().find(|other| {
                        other.class == finding.class
                            && other.fix.patch.is_some()
                            && other.fields.iter().any(|field| finding.fields.contains(field))
                    });
                    assert!(same.is_none(), "{}: {patch} leaves {same:?}", case["id"]);
                }
            }
        }
    }
    println!("patches offered: {offered:?}");
    for class in [
        "PhantomDefault",
        "UnstableRender",
        "EquivalentValue",
        "ControllerOwned",
        "RejectedField",
        "UnclaimedAddition",
        "LiveEdit",
        "TugOfWar",
    ] {
        assert!(offered.contains_key(class), "{class} offers nothing");
    }
}
