//! The diagnosis as a `JUnit` report, which CI systems show as tests: one suite per block, one failure per finding that
//! needs an action.

use std::fmt::Write as _;

use super::{Diagnosis, Group};

/// The report. What means nothing is a test that passed.
pub fn junit(diagnosis: &Diagnosis) -> String {
    let ill: Vec<Case> = diagnosis
        .ill
        .iter()
        .map(|illness| Case {
            app: illness.app.to_string(),
            name: format!("{} is healthy", illness.key),
            failure: Some((illness.status.clone(), illness.causes.join("\n"))),
        })
        .collect();
    let suites = [
        ("unhealthy", ill),
        ("wrong", cases(&diagnosis.wrong, true)),
        ("harmless", cases(&diagnosis.harmless, false)),
        ("unjudged", unjudged(diagnosis)),
        ("orphans", cases(&diagnosis.orphans, true)),
        ("unstable", cases(&diagnosis.unstable, false)),
    ];
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plumb doctor\">\n");
    for (name, cases) in &suites {
        let n_failures = cases.iter().filter(|case| case.failure.is_some()).count();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{n_failures}\">",
            cases.len()
        );
        for case in cases {
            text.push_str(&case.xml());
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

struct Case {
    app: String,
    name: String,
    /// Its message and its text.
    failure: Option<(String, String)>,
}

impl Case {
    fn xml(&self) -> String {
        let head =
            format!("    <testcase classname=\"{}\" name=\"{}\"", escaped(&self.app), escaped(&self.name));
        match &self.failure {
            None => format!("{head}/>\n"),
            Some((message, text)) => format!(
                "{head}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                escaped(message),
                escaped(text)
            ),
        }
    }
}

fn unjudged(diagnosis: &Diagnosis) -> Vec<Case> {
    let case = diagnosis.unjudged.iter().flat_map(|unjudged| {
        let problem = unjudged.problem.iter().map(|problem| Case {
            app: unjudged.app.to_string(),
            name: "can be judged".to_owned(),
            failure: Some(("not judged".to_owned(), problem.clone())),
        });
        let red = unjudged.red.iter().map(|key| Case {
            app: unjudged.app.to_string(),
            name: format!("{key} is Synced"),
            failure: Some(("OutOfSync".to_owned(), "plumb did not judge it".to_owned())),
        });
        problem.chain(red).collect::<Vec<_>>()
    });
    case.collect()
}

fn cases(groups: &[Group], fail: bool) -> Vec<Case> {
    let places = groups.iter().flat_map(|group| &group.places);
    let case = places.map(|place| {
        let finding = &place.finding;
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let text = [fields.join("\n"), finding.evidence.join("\n"), finding.fix.text.clone()];
        let text: Vec<&str> = text.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        Case {
            app: place.app.to_string(),
            name: format!("{} has no {}", finding.key, finding.class),
            failure: (fail && finding.counts).then(|| (finding.class.name().to_owned(), text.join("\n"))),
        }
    });
    case.collect()
}

/// Characters that XML 1.0 does not allow are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(char),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {}
            char => escaped.push(char),
        }
    }
    escaped
}
