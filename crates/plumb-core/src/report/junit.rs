//! `JUnit` reports, which CI systems show as tests.

use std::fmt::Write as _;

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCase {
    /// What it is about: an app.
    pub class: String,
    /// What it states.
    pub name: String,
    /// Its message and its text, if it is not so.
    pub failure: Option<(String, String)>,
}

/// The report: its name, and the tests of each suite.
pub fn junit(name: &str, suites: &[(&str, Vec<TestCase>)]) -> String {
    let mut text =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", escaped(name));
    for (name, cases) in suites {
        let n_failures = cases.iter().filter(|case| case.failure.is_some()).count();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{n_failures}\">",
            escaped(name),
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

impl TestCase {
    fn xml(&self) -> String {
        let head =
            format!("    <testcase classname=\"{}\" name=\"{}\"", escaped(&self.class), escaped(&self.name));
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
