//! Agreement with the recorded answers of Argo CD's own code about webhooks: which sets generate again. The other
//! recorded cases are judged by the test of the same name in `plumb-appset`. They are not part of this repository; where
//! they are not to be found, this says "skipped".

#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[path = "../../../plumb-appset/tests/appset_recorded/facts.rs"]
mod facts;

use std::collections::BTreeSet;
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue};
use plumb_appset::{Follows, Settings, Total, follows};
use plumb_core::version::Constraint;
use plumb_crd::ApplicationSet;
use plumb_crd::settings::{SecretText, WebhookSecrets};
use plumb_web::read_verified;
use serde_json::Value;

use crate::facts::Recorded;

#[expect(clippy::disallowed_methods, reason = "a test may look for its data")]
fn cases() -> Option<Vec<Value>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var("PLUMB_SHARED").map_or_else(|_| workspace.join("../shared"), PathBuf::from);
    let lines = std::fs::read_to_string(shared.join("appset/cases.jsonl")).ok()?;
    let cases = lines.lines().map(|line| serde_json::from_str(line).expect("a case is one line of JSON"));
    Some(cases.filter(|case: &Value| case["kind"] == "webhook").collect())
}

#[test]
fn appset_recorded() {
    let Some(cases) = cases() else {
        println!("skipped: the recorded answers are not here");
        return;
    };
    let (mut n_agree, mut n_different) = (0, 0);
    for case in &cases {
        let id = case["id"].as_str().unwrap_or_default();
        match judge(case) {
            Ok(None) => n_agree += 1,
            Ok(Some(reason)) => println!("{id}: differs on purpose: {reason}"),
            Err(difference) => {
                n_different += 1;
                println!("{id}: {difference}");
            }
        }
    }
    println!("webhook: {n_agree} of {} agree", cases.len());
    assert_eq!(n_different, 0, "{n_agree} of {} agree", cases.len());
}

fn headers(case: &Value) -> HeaderMap {
    let headers = case["input"]["event"]["headers"].as_object().into_iter().flatten();
    let pair = |(name, value): (&String, &Value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
    };
    headers.filter_map(pair).collect()
}

fn secrets(case: &Value) -> WebhookSecrets {
    let all = case["input"]["secrets"].as_array().into_iter().flatten();
    let mut found = all.filter(|secret| secret["name"] == "argocd-secret");
    let data = found.next().map(|secret| secret["data"].clone()).unwrap_or_default();
    let secret = |key: &str| data[key].as_str().map(SecretText::new);
    WebhookSecrets {
        github: secret("webhook.github.secret"),
        gitlab: secret("webhook.gitlab.secret"),
        azure_devops_username: secret("webhook.azuredevops.username"),
        azure_devops_password: secret("webhook.azuredevops.password"),
        ..WebhookSecrets::default()
    }
}

/// Compares one case. `Some` is the reason why plumb differs on purpose.
fn judge(case: &Value) -> Result<Option<&'static str>, String> {
    let (input, expected) = (&case["input"], &case["output"]);
    let headers = headers(case);
    let event = &input["event"];
    let body = match event["rawBody"].as_str() {
        Some(raw) => raw.to_owned(),
        None => event["body"].to_string(),
    };
    let is_post = event["method"].as_str().is_none_or(|method| method == "POST");
    let is_known = plumb_web::knows_sender(&headers);
    let answer = read_verified(&headers, &secrets(case), body.as_bytes());
    let refused = !is_post || !is_known || answer.is_err();
    let was_refused = expected["status"].as_u64().unwrap_or(200) >= 400;
    let push = answer.ok().flatten().filter(|_| !refused);
    let mut found = BTreeSet::new();
    let mut reasons = BTreeSet::new();
    let wanted: BTreeSet<&str> =
        expected["refreshed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let sets = input["applicationSets"].as_array().cloned().unwrap_or_default();
    for set in &sets {
        let set = ApplicationSet::from_json(set).map_err(|error| error.to_string())?;
        let follows = follows(&set, &Recorded::new(input), &settings());
        let id = format!("{}/{}", set.metadata.namespace, set.metadata.name);
        if push.as_ref().is_none_or(|push| !push.concerns_set(&follows)) {
            continue;
        }
        if !wanted.contains(id.as_str())
            && let Some(reason) = reason_for_more(&headers, &body, &follows)
        {
            reasons.insert(reason);
            continue;
        }
        found.insert(id);
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    if found != wanted {
        return Err(format!("refreshed {found:?} instead of {wanted:?}"));
    }
    if refused != was_refused {
        if refused || !is_unknown_there(&headers) {
            return Err(format!("refused: {refused} instead of {was_refused}"));
        }
        reasons.insert(OTHER_SENDERS);
    }
    Ok(reasons.first().copied())
}

const OTHER_SENDERS: &str = "plumb knows the webhooks of Gitea, Gogs and Bitbucket, too";

fn is_unknown_there(headers: &HeaderMap) -> bool {
    ["x-github-event", "x-gitlab-event", "x-vss-activityid"].iter().all(|name| !headers.contains_key(*name))
}

/// Why plumb generates a set again that Argo CD leaves to the next poll.
fn reason_for_more(headers: &HeaderMap, body: &str, follows: &Follows) -> Option<&'static str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if is_unknown_there(headers) {
        return Some(OTHER_SENDERS);
    }
    if header("x-gitlab-event") == Some("Tag Push Hook") {
        return Some("a set that reads a tag generates again when GitLab reports that tag");
    }
    if follows.git.iter().any(|(_, revision)| Constraint::parse(revision).is_some()) {
        return Some(
            "a set that reads a range of versions generates again when a tag of the range is pushed",
        );
    }
    if follows.git.iter().any(|(url, _)| url.ends_with('/')) {
        return Some("a repository is the same with a slash at the end");
    }
    let is_path = |repo: &str| repo.contains('/') && body.contains(repo);
    if follows.pull_requests.iter().any(|place| is_path(&place.repo)) {
        return Some("a project of GitLab is found by its path, too");
    }
    None
}

fn settings() -> Settings {
    Settings {
        new_git_file_globbing: false,
        include_hidden_directories: false,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
        seed: [7; 32],
    }
}
