//! Agreement with the recorded answers of Argo CD's own code, one JSON object a line. They are not part of this
//! repository; where they are not to be found, this says "skipped".

#![expect(clippy::expect_used, reason = "a test says what it expects")]

mod facts;
mod judge;
mod reconcile;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::judge::Judged;

#[expect(clippy::disallowed_methods, reason = "a test may look for its data")]
fn cases() -> Option<Vec<Value>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var("PLUMB_SHARED").map_or_else(|_| workspace.join("../shared"), PathBuf::from);
    let lines = std::fs::read_to_string(shared.join("appset/cases.jsonl")).ok()?;
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("a case is one line of JSON")).collect())
}

#[test]
fn appset_recorded() {
    let Some(cases) = cases() else {
        println!("skipped: the recorded answers are not here");
        return;
    };
    let mut classes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut n_different, mut n_on_purpose, mut n_other_words, mut n_left_out) = (0, 0, 0, 0);
    for case in &cases {
        let (id, class) =
            (case["id"].as_str().unwrap_or_default(), case["class"].as_str().unwrap_or_default());
        let agrees = match judge::judge(case) {
            Judged::LeftOut => {
                n_left_out += 1;
                continue;
            }
            Judged::Agrees => true,
            Judged::OtherWords(words) => {
                n_other_words += 1;
                println!("{id}: fails in other words: {words}");
                true
            }
            Judged::OnPurpose(reason) => {
                n_on_purpose += 1;
                println!("{id}: differs on purpose: {reason}");
                false
            }
            Judged::Differs(difference) => {
                n_different += 1;
                println!("{id}: {difference}");
                false
            }
        };
        let counts = classes.entry(class.to_owned()).or_default();
        counts.0 += usize::from(agrees);
        counts.1 += 1;
    }
    for (class, (agree, compared)) in &classes {
        println!("{class}: {agree} of {compared}");
    }
    let agree: usize = classes.values().map(|(agree, _)| agree).sum();
    let compared: usize = classes.values().map(|(_, compared)| compared).sum();
    println!(
        "{agree} of {compared} agree ({n_other_words} of them fail in other words), {n_on_purpose} differ on purpose; \
         {n_left_out} about webhooks are judged by the test of plumb-web"
    );
    assert_eq!(n_different, 0, "{agree} of {compared} agree");
}
