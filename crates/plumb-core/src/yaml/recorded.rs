//! This reader against the Go library that Kubernetes uses.
//!
//! `testdata/yaml/recorded.jsonl` holds what the Go library said (`tools/yaml-oracle`), so Go is not needed here.

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::{Number, Value, json};

use super::{Limits, YamlProblem, parse_documents_bytes};

/// What the Go library said to one input.
struct Answer {
    /// `None`: it refused.
    documents: Option<Vec<Value>>,
    /// Would its strict reader, which refuses keys that are there twice, read it?
    strict: bool,
}

impl Answer {
    fn from_json(answer: &Value) -> Self {
        let documents = answer.get("error").is_none().then(|| {
            let texts = answer["documents"].as_array().cloned().unwrap_or_default();
            texts
                .iter()
                .map(|text| as_kubernetes(serde_json::from_str(text.as_str().unwrap()).unwrap()))
                .filter(|document| !document.is_null())
                .collect()
        });
        Self { documents, strict: answer.get("strict").is_some() }
    }
}

/// Kubernetes reads a JSON number as a 64-bit integer if it is one, else as a float.
fn as_kubernetes(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => json!(int),
            (None, Some(0.0)) => json!(0),
            (None, float) => Number::from_f64(float.unwrap()).map(Value::Number).unwrap(),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(as_kubernetes).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, as_kubernetes(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// `Err` says how the two differ.
fn compare(input: &[u8], answer: &Answer) -> Result<(), String> {
    let ours = parse_documents_bytes(input, &Limits::default());
    match (&answer.documents, ours) {
        (None, Err(_)) => Ok(()),
        (Some(_), Err(error)) if matches!(error.what, YamlProblem::DuplicateKey { .. }) && !answer.strict => {
            Ok(())
        }
        (Some(documents), Ok(ours)) => {
            let ours: Vec<Value> =
                ours.into_iter().map(|document| document.value).filter(|v| !v.is_null()).collect();
            if ours == *documents { Ok(()) } else { Err(format!("VALUE go {documents:?}, plumb {ours:?}")) }
        }
        (Some(documents), Err(error)) => Err(format!("REFUSED go {documents:?}, plumb refuses: {error}")),
        (None, Ok(ours)) => Err(format!("ACCEPTED go refuses, plumb {ours:?}")),
    }
}

fn input_of(case: &Value) -> Vec<u8> {
    match (case.get("text"), case.get("base64")) {
        (Some(text), _) => text.as_str().unwrap().as_bytes().to_vec(),
        (None, bytes) => {
            base64::engine::general_purpose::STANDARD.decode(bytes.and_then(Value::as_str).unwrap()).unwrap()
        }
    }
}

/// Every difference is one that `differences.jsonl` lists with its reason, and everything listed differs.
#[test]
fn plumb_reads_what_kubernetes_reads() {
    let wanted: BTreeSet<Vec<u8>> = include_str!("../../testdata/yaml/differences.jsonl")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| input_of(&serde_json::from_str(line).unwrap()))
        .collect();
    let mut differing = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for line in include_str!("../../testdata/yaml/recorded.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let input = input_of(&case);
        n_cases += 1;
        if let Err(difference) = compare(&input, &Answer::from_json(&case)) {
            if !wanted.contains(&input) {
                let text = String::from_utf8_lossy(&input).into_owned();
                wrong.push(format!("{}\n    {difference}", json!({"text": text})));
            }
            differing.insert(input);
        }
    }
    for input in wanted.difference(&differing) {
        wrong.push(format!("{:?} is listed as a difference, and is none", String::from_utf8_lossy(input)));
    }
    assert!(wrong.is_empty(), "{} of {n_cases} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n_cases > 5000, "only {n_cases} cases: was the recording truncated?");
}
