//! This reader against the Go library that Kubernetes uses.
//!
//! `testdata/yaml/recorded.jsonl` holds what the Go library said (`tools/yaml-oracle`), so Go is not needed here.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use serde_json::{Number, Value, json};

use crate::yaml::{Limits, YamlProblem, parse_documents_bytes};

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
    let wanted: BTreeSet<Vec<u8>> = include_str!("../../../testdata/yaml/differences.jsonl")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| input_of(&serde_json::from_str(line).unwrap()))
        .collect();
    let mut differing = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for line in include_str!("../../../testdata/yaml/recorded.jsonl").lines() {
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

/// The Go library itself, running.
struct Oracle {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    #[expect(clippy::disallowed_methods, reason = "the test starts the Go program that the variable names")]
    fn start() -> Option<Self> {
        let program = std::env::var("PLUMB_YAML_ORACLE").ok()?;
        let mut process = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Some(Self { process, input, output })
    }

    fn ask(&mut self, text: &str) -> Answer {
        writeln!(self.input, "{}", json!(text)).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        Answer::from_json(&serde_json::from_str(&line).unwrap())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Small, repeatable dice.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }

    fn pick<'item>(&mut self, items: &'item [String]) -> &'item str {
        &items[self.below(items.len())]
    }

    /// One of the texts with a few random edits.
    fn mutate(&mut self, texts: &[String], parts: &[String]) -> String {
        let mut chars: Vec<char> = self.pick(texts).chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(chars.len() + 1);
            let end = (at + self.below(6)).min(chars.len());
            match self.below(5) {
                0 => drop(chars.drain(at..end)),
                1 => {
                    let copy: Vec<char> = chars[at..end].to_vec();
                    let to = self.below(chars.len() + 1);
                    chars.splice(to..to, copy);
                }
                2 => {
                    let other: Vec<char> = self.pick(texts).chars().collect();
                    let from = self.below(other.len() + 1);
                    let until = (from + self.below(12)).min(other.len());
                    chars.splice(at..at, other[from..until].iter().copied());
                }
                _ => {
                    let part: Vec<char> = self.pick(parts).chars().collect();
                    chars.splice(at..at, part);
                }
            }
        }
        chars.into_iter().collect()
    }
}

/// Is it a difference that we want? We refuse what Go's library drops in silence (everything behind the first
/// document of a chunk, of keys that come twice all but the last), and read what JSON allows.
fn is_wanted(text: &str, answer: &Answer, difference: &str) -> bool {
    let stricter = ["expected the end of the document", "reads no directives", "is already set on line"];
    let unusual = ["\\/", "\\ud", "\\uD", "...", "\u{FEFF}", "\r", "---#", "---\u{A0}"];
    let refused = difference.starts_with("REFUSED");
    unusual.iter().any(|mark| text.contains(mark))
        || (refused && stricter.iter().any(|words| difference.contains(words)))
        || (refused && text.char_indices().any(|(end, _)| compare(&text.as_bytes()[..end], answer).is_ok()))
}

/// Random texts, read by both. Needs `PLUMB_YAML_ORACLE`, the path of a built `tools/yaml-oracle`;
/// `PLUMB_YAML_TEXTS` says how many.
#[test]
#[expect(clippy::disallowed_methods, reason = "a manual run sets its duration")]
fn random_texts_are_read_alike() {
    const N_TEXTS: usize = 20_000;
    let n_texts =
        std::env::var("PLUMB_YAML_TEXTS").ok().and_then(|text| text.parse().ok()).unwrap_or(N_TEXTS);
    let Some(mut oracle) = Oracle::start() else {
        println!("skipped: PLUMB_YAML_ORACLE is not set");
        return;
    };
    let strings = |lines: &str| -> Vec<String> {
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let texts = strings(include_str!("../../../testdata/yaml/documents.jsonl"));
    let mut parts = strings(include_str!("../../../testdata/yaml/scalars.jsonl"));
    let signs = [
        "\n", " ", "  ", ": ", "- ", "? ", "\n  ", "\n- ", "[", "]", "{", "}", ", ", "'", "\"", "|", ">", "#",
    ];
    for _ in 0..8 {
        parts.extend(signs.map(str::to_owned));
    }
    let mut wrong = Vec::new();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for _ in 0..n_texts {
        let text = dice.mutate(&texts, &parts);
        let answer = oracle.ask(&text);
        if let Err(difference) = compare(text.as_bytes(), &answer)
            && !is_wanted(&text, &answer, &difference)
        {
            wrong.push(format!("{}\n    {difference}", json!(text)));
        }
    }
    assert!(wrong.is_empty(), "{} of {n_texts} differ:\n{}", wrong.len(), wrong.join("\n"));
}
