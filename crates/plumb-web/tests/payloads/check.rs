//! What holds for any bytes that a sender of webhooks sends. The tests here and a fuzz target share it.

use http::{HeaderMap, HeaderName, HeaderValue};
use plumb_web::read_payload;

/// For every sender the headers of a push.
const SENDERS: [&[(&str, &str)]; 12] = [
    &[("x-github-event", "push")],
    &[("x-gitea-event", "push")],
    &[("x-gitlab-event", "Push Hook")],
    &[("x-hook-uuid", "{1}"), ("x-event-key", "repo:push")],
    &[("x-event-key", "repo:refs_changed")],
    &[("x-vss-activityid", "1")],
    &[("x-plumb-event", "push")],
    &[("x-github-event", "pull_request")],
    &[("x-gitea-event", "pull_request")],
    &[("x-gitlab-event", "Merge Request Hook")],
    &[("x-hook-uuid", "{1}"), ("x-event-key", "pullrequest:created")],
    &[("x-event-key", "pr:opened")],
];

/// Reads the bytes as the payload of every sender, and panics if a result exceeds a limit. Returns for how many senders
/// they are a push.
pub(crate) fn any_payload(body: &[u8]) -> usize {
    SENDERS.iter().filter(|headers| is_push(headers, body)).count()
}

fn is_push(headers: &[(&'static str, &'static str)], body: &[u8]) -> bool {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    match read_payload(&headers, body) {
        Ok(Some(push)) => {
            assert!(push.pull_requests.is_some() == push.repositories.is_empty());
            assert!(push.repositories.len() <= 8);
            // Bitbucket Cloud names two refs for each change.
            assert!(push.revisions.len() <= 2000);
            assert!(push.changed_files.len() <= 10_000);
            true
        }
        Ok(None) => false,
        Err(why) => {
            assert!(why.len() < 200, "{why}");
            false
        }
    }
}
