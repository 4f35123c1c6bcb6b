//! The diagnosis as a `JUnit` report, which CI systems show as tests: one suite per block, one failure per finding that
//! needs an action.

use super::{Diagnosis, Group};
use crate::report::{TestCase, junit as junit_of};

/// The report. What means nothing is a test that passed.
pub fn junit(diagnosis: &Diagnosis) -> String {
    let ill: Vec<TestCase> = diagnosis
        .ill
        .iter()
        .map(|illness| TestCase {
            class: illness.app.to_string(),
            name: format!("{} is healthy", illness.key),
            failure: Some((illness.status.clone(), illness.causes.join("\n"))),
        })
        .collect();
    let suites = [
        ("unhealthy", ill),
        ("wrong", cases(&diagnosis.wrong, true)),
        ("harmless", cases(&diagnosis.harmless, false)),
        ("redWithoutDifference", unexplained(diagnosis)),
        ("unjudged", unjudged(diagnosis)),
        ("orphans", cases(&diagnosis.orphans, true)),
        ("unstable", cases(&diagnosis.unstable, false)),
    ];
    junit_of("plumb doctor", &suites)
}

/// Nothing was found that is wrong with them.
fn unexplained(diagnosis: &Diagnosis) -> Vec<TestCase> {
    let case = diagnosis.unexplained.iter().map(|(app, key)| TestCase {
        class: app.to_string(),
        name: format!("{key} has no difference, and is OutOfSync in Argo CD"),
        failure: None,
    });
    case.collect()
}

fn unjudged(diagnosis: &Diagnosis) -> Vec<TestCase> {
    let case = diagnosis.unjudged.iter().flat_map(|unjudged| {
        let problem = unjudged.problem.iter().map(|problem| TestCase {
            class: unjudged.app.to_string(),
            name: "can be judged".to_owned(),
            failure: Some(("not judged".to_owned(), problem.clone())),
        });
        let red = unjudged.red.iter().map(|key| TestCase {
            class: unjudged.app.to_string(),
            name: format!("{key} is Synced"),
            failure: Some(("OutOfSync".to_owned(), "plumb did not judge it".to_owned())),
        });
        problem.chain(red).collect::<Vec<_>>()
    });
    case.collect()
}

fn cases(groups: &[Group], fail: bool) -> Vec<TestCase> {
    let places = groups.iter().flat_map(|group| &group.places);
    let case = places.map(|place| {
        let finding = &place.finding;
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let text = [fields.join("\n"), finding.evidence.join("\n"), finding.fix.text.clone()];
        let text: Vec<&str> = text.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        TestCase {
            class: place.app.to_string(),
            name: format!("{} has no {}", finding.key, finding.class),
            failure: (fail && finding.counts).then(|| (finding.class.name().to_owned(), text.join("\n"))),
        }
    });
    case.collect()
}
