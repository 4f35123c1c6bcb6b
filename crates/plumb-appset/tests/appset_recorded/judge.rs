//! Compares one recorded case with what plumb answers.

use plumb_appset::{Budget, Data, Engine, Params, Reason, Renderer, Settings, Total, generate};
use plumb_crd::ApplicationSet;
use serde_json::Value;

use crate::facts::Recorded;

/// Our words where a template calls a function that Go answers and plumb refuses.
const REFUSED: &str = "plumb refuses functions that create keys, certificates and password hashes";
const NO_KEYS: &str =
    "plumb refuses to create keys, certificates and password hashes: they would be new with each rendering";
const NO_GIT_DIRECTORY: &str = "plumb reads commits, in which there is no directory .git";
const DEFECT: &str = "the recorder calls the answer a defect or limit of Argo CD";

/// How an answer differs.
pub(crate) enum Difference {
    /// Both fail, with other words.
    Words(String),
    /// A deliberate difference, with its reason.
    OnPurpose(&'static str),
    /// Another one.
    Other(String),
}

/// How a case was judged.
pub(crate) enum Judged {
    Agrees,
    /// It fails as it should, with other words.
    OtherWords(String),
    /// It differs, and why it may.
    OnPurpose(&'static str),
    Differs(String),
    /// The test of `plumb-web` judges it.
    LeftOut,
}

pub(crate) fn judge(case: &Value) -> Judged {
    let result = match case["kind"].as_str() {
        Some("render") => Some(render(case)),
        Some("generate") => generated(case),
        Some("reconcile") => Some(crate::reconcile::judge(case)),
        _ => None,
    };
    match result {
        None => Judged::LeftOut,
        Some(Ok(())) => Judged::Agrees,
        Some(Err(Difference::OnPurpose(reason))) => Judged::OnPurpose(reason),
        Some(Err(_)) if case["quirk"].is_string() => Judged::OnPurpose(DEFECT),
        Some(Err(Difference::Words(words))) => Judged::OtherWords(words),
        Some(Err(Difference::Other(difference))) => Judged::Differs(difference),
    }
}

/// An error of ours where Argo CD has an answer.
fn unexpected(error: &str, difference: String) -> Difference {
    if error.contains(REFUSED) { Difference::OnPurpose(NO_KEYS) } else { Difference::Other(difference) }
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

fn render(case: &Value) -> Result<(), Difference> {
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
        (Ok(text), expected) => {
            Err(Difference::Other(format!("{text:?} instead of {:?}", expected.unwrap_or("an error"))))
        }
        (Err(error), None) => same_words(&error, &case["output"]),
        (Err(error), Some(expected)) => {
            Err(unexpected(&error, format!("error {error} instead of {expected:?}")))
        }
    }
}

/// The words of an error matter for templates, where users search for them.
fn same_words(error: &str, output: &Value) -> Result<(), Difference> {
    let expected = output["error"].as_str();
    match expected {
        Some(expected) if expected.contains("template: base:") && expected != error => {
            Err(Difference::Words(format!("\n    found    {error}\n    expected {expected}")))
        }
        _ => Ok(()),
    }
}

fn generated(case: &Value) -> Option<Result<(), Difference>> {
    let input = &case["input"];
    let set = match ApplicationSet::from_json(&input["applicationSet"]) {
        Ok(set) => set,
        Err(error) => {
            let expects_error = case["output"].get("applications").is_none();
            return Some(if expects_error {
                Ok(())
            } else {
                Err(Difference::Other(format!("cannot read the set: {error}")))
            });
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
                None => Err(unexpected(&error.message, format!("error {error}"))),
                Some(output) if output["reason"].is_string() && output["reason"] != error.reason.name() => {
                    let reason = error.reason.name();
                    Err(Difference::Other(format!("reason {reason} instead of {}", output["reason"])))
                }
                Some(_) if outputs.len() > 1 => Ok(()),
                Some(output) => same_words(&error.message, output),
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
            let lacks_git = input["settings"]["includeHiddenDirectories"] == true
                && same(&without_git_directory(&expected["applications"]), &found);
            Some(match (agrees, lacks_git) {
                (true, _) => Ok(()),
                (false, true) => Err(Difference::OnPurpose(NO_GIT_DIRECTORY)),
                (false, false) => Err(Difference::Other(shown(expected, &found))),
            })
        }
    }
}

/// The Applications in which no text is `.git` or a path in it.
fn without_git_directory(applications: &Value) -> Value {
    fn names_git(value: &Value) -> bool {
        match value {
            Value::String(text) => text == ".git" || text.starts_with(".git/"),
            Value::Array(items) => items.iter().any(names_git),
            Value::Object(map) => map.values().any(names_git),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    applications
        .as_array()
        .into_iter()
        .flatten()
        .filter(|application| !names_git(application))
        .cloned()
        .collect()
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
