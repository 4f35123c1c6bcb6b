//! Compares one recorded case with what plumb answers.

use plumb_appset::{Budget, Data, Engine, Params, Reason, Renderer, Settings, Total, generate};
use plumb_crd::ApplicationSet;
use serde_json::Value;

use crate::facts::Recorded;

/// Cases whose answer differs on purpose, with a digest of the difference and its reason: another difference of the same
/// case is a failure.
const ON_PURPOSE: [(&str, &str, &str); 11] = [
    (
        "sprig-genkey-shapes",
        "1d7fa16409f86f19",
        "plumb refuses to create keys: they would be new with each rendering, or could be guessed",
    ),
    ("sprig-genca-shapes", "3a3a2011e22947b2", "plumb refuses to create certificates, for the same reason"),
    (
        "sprig-derivePassword",
        "c3fcb3ad282ab039",
        "plumb refuses to derive passwords: one call costs more than the budget of a set",
    ),
    (
        "gitdir-hidden-included",
        "91f616281a04e58f",
        "plumb reads commits, in which there is no directory .git",
    ),
    ("ps-full-rollout", "b523941dc4c71b46", ONE_OPERATION),
    ("ps-maxupdate-counts-running", "7f195b184840232b", ONE_OPERATION),
    ("ps-pending-app-error", "40ac088122d9b4b7", ONE_OPERATION),
    ("ign-annotation", "842c657a5c8ea63d", LIVE_VALUES),
    ("ign-list-item-jq-other-change", "e6287627d8fd8f1b", LIVE_VALUES),
    ("ign-helm-parameter-jq", "67061a0f5d94700e", LIVE_VALUES),
    (
        "vs-unknown-generator",
        "b9b6b08c34ccd825",
        "a set with a generator that plumb does not know deletes nothing without a user",
    ),
];

const ONE_OPERATION: &str = "plumb requests no second sync of an Application that left Pending";
const LIVE_VALUES: &str =
    "a field that belongs to others keeps its live value, also in lists and last annotations";

/// How a case was judged.
pub(crate) enum Judged {
    Agrees,
    /// It differs, and why it may.
    OnPurpose(&'static str),
    Differs(String),
    /// The test of `plumb-web` judges it.
    LeftOut,
}

pub(crate) fn judge(case: &Value) -> Judged {
    let id = case["id"].as_str().unwrap_or_default();
    let result = match case["kind"].as_str() {
        Some("render") => Some(render(case)),
        Some("generate") => generated(case),
        Some("reconcile") => Some(crate::reconcile::judge(case)),
        _ => None,
    };
    let pinned = ON_PURPOSE.iter().find(|(known, ..)| *known == id).map(|(_, digest, why)| (*digest, *why));
    match (result, pinned) {
        (None, _) => Judged::LeftOut,
        (Some(Ok(())), None) => Judged::Agrees,
        (Some(Ok(())), Some(_)) => Judged::Differs("agrees; take it off the list".to_owned()),
        (Some(Err(difference)), Some((pinned, reason))) => match digest(&difference) {
            found if found == pinned => Judged::OnPurpose(reason),
            found => Judged::Differs(format!("another difference than on purpose, {found}: {difference}")),
        },
        (Some(Err(difference)), None) => Judged::Differs(difference),
    }
}

fn digest(difference: &str) -> String {
    use sha2::Digest as _;
    let bytes = sha2::Sha256::digest(difference.as_bytes());
    let number = bytes.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}")
}

pub(crate) fn settings(input: &Value) -> Settings {
    Settings {
        new_git_file_globbing: input["settings"]["newGitFileGlobbing"] == true,
        include_hidden_directories: input["settings"]["includeHiddenDirectories"] == true,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
        seed: [7; 32],
    }
}

fn render(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let engine = if input["goTemplate"] == true {
        Engine::Go(texts(&input["goTemplateOptions"]))
    } else {
        Engine::Flat
    };
    let settings = settings(input);
    let renderer = Renderer {
        engine,
        limits: settings.limits,
        budget: Budget::new(settings.total),
        now: settings.now,
        seed: settings.seed,
    };
    let entries = input["params"].as_object().into_iter().flatten();
    let params: Params = entries.map(|(key, value)| (key.clone(), Data::from_json(value))).collect();
    let answer = renderer.render(input["template"].as_str().unwrap_or_default(), &params);
    match (answer, case["output"]["result"].as_str()) {
        (Ok(text), Some(expected)) if text == expected => Ok(()),
        (Ok(text), expected) => Err(format!("{text:?} instead of {:?}", expected.unwrap_or("an error"))),
        (Err(error), None) => same_text(&error, &case["output"]),
        (Err(error), Some(expected)) => Err(format!("error {error} instead of {expected:?}")),
    }
}

/// The text of an error counts for templates, where users search for it.
fn same_text(error: &str, output: &Value) -> Result<(), String> {
    let expected = output["error"].as_str();
    match expected {
        Some(expected) if expected.contains("template: base:") && expected != error => {
            Err(format!("error text\n    {error}\n    {expected}"))
        }
        _ => Ok(()),
    }
}

fn generated(case: &Value) -> Option<Result<(), String>> {
    let input = &case["input"];
    let set = match ApplicationSet::from_json(&input["applicationSet"]) {
        Ok(set) => set,
        Err(error) => {
            let expects_error = case["output"].get("applications").is_none();
            return Some(if expects_error { Ok(()) } else { Err(format!("cannot read the set: {error}")) });
        }
    };
    let facts = Recorded::new(input);
    let outputs = match case["output"]["anyOf"].as_array() {
        Some(outputs) => outputs.clone(),
        None => vec![case["output"].clone()],
    };
    match generate(&set, &facts, &settings(input)) {
        Err(error) if error.reason == Reason::Unanswered => None,
        Err(error) => {
            let expected = outputs.iter().find(|output| output.get("applications").is_none());
            Some(match expected {
                None => Err(format!("error {error}")),
                Some(output) if output["reason"].is_string() && output["reason"] != error.reason.name() => {
                    Err(format!("reason {} instead of {}", error.reason.name(), output["reason"]))
                }
                Some(_) if outputs.len() > 1 => Ok(()),
                Some(output) => same_text(&error.message, output),
            })
        }
        Ok(generated) => {
            let mut found = generated.applications;
            found.sort_by_key(|application| {
                application["metadata"]["name"].as_str().unwrap_or_default().to_owned()
            });
            let found = Value::Array(found);
            let agrees = outputs.iter().any(|output| same(&output["applications"], &found));
            let expected = &outputs[0];
            Some(if agrees { Ok(()) } else { Err(shown(expected, &found)) })
        }
    }
}

/// Equal but for the order of Applications with one name, and for how a number is written.
fn same(expected: &Value, found: &Value) -> bool {
    let texts = |value: &Value| {
        let mut texts: Vec<String> =
            value.as_array().into_iter().flatten().map(|item| normal(item).to_string()).collect();
        texts.sort();
        texts
    };
    expected.is_array() && texts(expected) == texts(found)
}

fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, item)| (key.clone(), normal(item))).collect())
        }
        other => other.clone(),
    }
}

fn shown(expected: &Value, found: &Value) -> String {
    match expected.get("applications") {
        None => {
            let text = expected["error"].as_str().or(expected["panic"].as_str()).unwrap_or_default();
            format!("{} Applications instead of the error {text}", found.as_array().map_or(0, Vec::len))
        }
        Some(applications) => format!("\n    found    {found}\n    expected {applications}"),
    }
}
