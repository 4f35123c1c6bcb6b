use std::time::Duration;

use plumb_core::object::ObjectKey;
use plumb_kube::{ApiError, Impersonation, Retry};
use serde_json::json;
use tokio::time::Instant;

use super::server::{Server, object};

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", Some("a".to_owned()), "x")
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_waits_as_told_and_is_sent_again() {
    let server = Server::default();
    server
        .answer(429, vec![("retry-after", "3".to_owned())], json!({"code": 429, "reason": "TooManyRequests"}))
        .answer(200, vec![], object("x", "u1", 5));
    let client = server.client();
    client.discover().await.unwrap();
    let before = client.concurrency();
    let started = Instant::now();
    let found = client.get(&key()).await.unwrap().unwrap();
    assert_eq!(found.uid(), Some("u1"));
    assert!(started.elapsed() >= Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(client.concurrency() < before);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_throttles_for_ever_is_an_error_in_the_end() {
    let server = Server::default();
    for _ in 0..20 {
        server.answer(429, vec![], json!({"code": 429}));
    }
    let client = server.client();
    client.discover().await.unwrap();
    let error = client.get(&key()).await.unwrap_err();
    assert_eq!(error.category(), "throttled");
    assert_eq!(error.retry(), Retry::Soon);
}

#[tokio::test(start_paused = true)]
async fn other_refusals_are_not_sent_again() {
    let server = Server::default();
    server.answer(500, vec![], json!({"message": "webhook is down", "code": 500, "reason": "InternalError"}));
    let client = server.client();
    client.discover().await.unwrap();
    let error = client.get(&key()).await.unwrap_err();
    assert!(matches!(&error, ApiError::Refused { status, .. } if status.message == "webhook is down"));
    assert_eq!(error.retry(), Retry::Soon);
    assert_eq!(server.seen().len(), 1);

    server.answer(404, vec![], json!({"code": 404, "reason": "NotFound"}));
    assert!(client.get(&key()).await.unwrap().is_none());
    server.answer(200, vec![], json!("no object"));
    assert_eq!(client.get(&key()).await.unwrap_err().category(), "unreadable");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_header_is_refused_before_it_is_sent() {
    let server = Server::default();
    let client = server.client();
    client.discover().await.unwrap();
    let hostile = Impersonation { user: "a\r\nimpersonate-group: system:masters".to_owned(), groups: vec![] };
    let error = client.impersonating(hostile).get(&key()).await.unwrap_err();
    assert_eq!(error.category(), "malformed");
    assert!(server.seen().is_empty());
}
