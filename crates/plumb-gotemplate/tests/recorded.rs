//! Agreement with Go's own libraries: `testdata/recorded.jsonl` has templates with what `tools/template-oracle` answered.
//! Its first line has the parameters of all others. The oracle writes its questions again, so it also records:
//!
//! ```text
//! go -C tools/template-oracle run . < testdata/recorded.jsonl > recorded.jsonl
//! ```
//!
//! `PLUMB_TEMPLATE_CASES` names a file with more such lines.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test says what it expects and what is different"
)]

use std::path::PathBuf;

use jiff::Timestamp;
use plumb_gotemplate::{Limits, Options, Scope, Template, Value};
use serde_json::Value as Json;

/// Functions that Go answers and plumb refuses.
const REFUSED: &str = "plumb refuses functions that create keys, certificates and password hashes";

fn render(case: &Json, usual: &Json) -> Result<String, String> {
    let options: Vec<&str> =
        case["options"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let options = Options::read(&options).map_err(|fault| fault.0)?;
    let scope = Scope::new(Limits::default(), Timestamp::UNIX_EPOCH, [7; 32]);
    let params = case.get("params").unwrap_or(usual);
    let params = Value::from_json(&scope, params).map_err(|fault| fault.0)?;
    let template = Template::parse("base", case["template"].as_str().unwrap_or_default(), scope.limits());
    let template = template.map_err(|error| error.to_string())?;
    template.render(&scope, options, &params).map_err(|error| error.to_string())
}

/// What is different, if anything is.
fn difference(case: &Json, usual: &Json) -> Option<String> {
    let found = render(case, usual);
    let expected = match case["result"].as_str() {
        Some(result) => Ok(result.to_owned()),
        None => Err(case["error"].as_str().unwrap_or_default().to_owned()),
    };
    let is_refused = |error: &String| error.contains(REFUSED);
    if found == expected || found.as_ref().is_err_and(is_refused) {
        return None;
    }
    let template = &case["template"];
    Some(format!("{template}\n    found    {found:?}\n    expected {expected:?}"))
}

fn check(lines: &str) {
    let mut cases: Vec<Json> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a case is one line of JSON")).collect();
    let usual = cases.remove(0)["params"].take();
    let differences: Vec<String> = cases.iter().filter_map(|case| difference(case, &usual)).collect();
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} of {} agree", cases.len() - differences.len(), cases.len());
    assert!(differences.is_empty(), "{} templates differ", differences.len());
}

#[test]
fn templates_render_as_in_go() {
    check(include_str!("../testdata/recorded.jsonl"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may look for its data")]
fn more_templates_render_as_in_go() {
    let Some(path) = std::env::var_os("PLUMB_TEMPLATE_CASES").map(PathBuf::from) else { return };
    check(&std::fs::read_to_string(path).expect("the file can be read"));
}
