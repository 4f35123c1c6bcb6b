//! Pushes on their way to the leader: waiting in this process, and in the `ConfigMap` through which a standby process
//! passes them on.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;
use plumb_core::object::Manifest;
use plumb_kube::{ApplyOptions, FieldValidation, OwnWrite, PUSHES_CONFIG_MAP};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::inbox::PushInbox;
use super::push::RepositoryPush;

/// Largest JSON text of one push, and of all pushes that are passed on in one write.
const LARGEST_PUSH: usize = 64 << 10;
const LARGEST_WRITE: usize = 256 << 10;
/// How many branches and tags a push keeps if it is too large.
const REVISIONS_OF_LARGE: usize = 100;
/// The key of the `ConfigMap`.
const PUSHES: &str = "pushes";

/// The pushes that wait in this process.
#[derive(Default)]
pub(crate) struct PushBox {
    inbox: Mutex<PushInbox>,
    added: Notify,
}

impl PushBox {
    /// Adds pushes. False if there is no room for one of them.
    pub(crate) fn add(&self, pushes: impl IntoIterator<Item = RepositoryPush>) -> bool {
        let mut all_fit = true;
        let mut inbox = self.inbox.lock();
        for push in pushes {
            all_fit &= inbox.add(push);
        }
        drop(inbox);
        self.added.notify_one();
        all_fit
    }

    /// When the next push can be delivered; `None` if no push waits.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.inbox.lock().next_due(now)
    }

    pub(crate) fn take_due(&self, now: Instant) -> Vec<RepositoryPush> {
        self.inbox.lock().take_due(now)
    }

    /// Waits until a push is added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

/// The write that passes pushes on to the leader, and the pushes that have no room in it. `mark` is another one for each
/// write, so that the leader sees a change.
pub(crate) fn pass_on(
    pushes: Vec<RepositoryPush>,
    namespace: &str,
    mark: &str,
) -> Option<(OwnWrite, Vec<RepositoryPush>)> {
    let mut texts: Vec<String> = Vec::new();
    let mut size = 0;
    let mut left = Vec::new();
    for push in pushes {
        let text = as_text(push.clone())?;
        if size > 0 && size + text.len() > LARGEST_WRITE {
            left.push(push);
            continue;
        }
        size += text.len();
        texts.push(text);
    }
    let manifest = Manifest::new(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": PUSHES_CONFIG_MAP,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "plumb", "app.kubernetes.io/part-of": "plumb"},
        },
        "data": {PUSHES: format!("[{}]", texts.join(",")), "passedOnBy": mark},
    }));
    let options = ApplyOptions {
        field_manager: "plumb".to_owned(),
        force: true,
        field_validation: FieldValidation::Ignore,
        subresource: None,
    };
    Some((OwnWrite::Apply { manifest: manifest.ok()?, options }, left))
}

/// A push as JSON, with fewer details if it is too large.
fn as_text(mut push: RepositoryPush) -> Option<String> {
    let text = serde_json::to_string(&push).ok()?;
    if text.len() <= LARGEST_PUSH {
        return Some(text);
    }
    push.changed_files = None;
    push.revisions = push.revisions.into_iter().take(REVISIONS_OF_LARGE).collect();
    serde_json::to_string(&push).ok()
}

/// The pushes that a standby process passed on. A text that plumb did not write gives none.
pub(crate) fn passed_on(config_map: &Manifest) -> Vec<RepositoryPush> {
    let data = config_map.value().get("data").and_then(|data| data.get(PUSHES)).and_then(Value::as_str);
    let pushes: Vec<RepositoryPush> =
        data.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // The inbox bounds lists by merging into an entry that is within the limits.
    let by_repository: BTreeMap<_, _> =
        pushes.into_iter().map(|push| (push.repository.clone(), push)).collect();
    by_repository.into_values().filter_map(RepositoryPush::within_limits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pushes::push::Push;

    fn push(path: &str, n_files: usize) -> RepositoryPush {
        let push = Push {
            repositories: vec![format!("https://git.example.com/{path}")],
            revisions: vec!["main".to_owned()],
            touches_default: true,
            changed_files: (0..n_files).map(|n| format!("{}/{n}", "x".repeat(200))).collect(),
            pull_requests: None,
        };
        push.by_repository(true).remove(0)
    }

    fn written(write: &OwnWrite) -> &Manifest {
        match write {
            OwnWrite::Apply { manifest, .. } => manifest,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_passed_on_is_read_back() {
        let pushes = vec![push("a", 2), push("b", 0)];
        let (write, left) = pass_on(pushes.clone(), "argocd", "me 1").unwrap();
        assert_eq!((passed_on(written(&write)), left), (pushes, vec![]));
        let (again, _) = pass_on(vec![push("a", 2)], "argocd", "me 2").unwrap();
        assert_ne!(written(&write).value(), written(&again).value());
    }

    #[test]
    fn one_write_is_bounded() {
        let (large, _) = pass_on(vec![push("a", 900)], "argocd", "m").unwrap();
        assert_eq!(passed_on(written(&large))[0].changed_files, None, "any file may have changed");
        let many: Vec<_> = (0..100).map(|n| push(&format!("r{n}"), 200)).collect();
        let (write, left) = pass_on(many, "argocd", "m").unwrap();
        assert!(written(&write).value().to_string().len() < 400 << 10);
        assert_eq!(passed_on(written(&write)).len() + left.len(), 100);
        assert!(!left.is_empty());
    }

    #[test]
    fn what_plumb_did_not_write_is_ignored() {
        for text in ["", "[", "{}", "[1]", "[{\"repository\": {\"host\": \"h\", \"path\": \"p\"}}]"] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {PUSHES: text}});
            assert_eq!(passed_on(&Manifest::new(object).unwrap()), [], "{text}");
        }
    }
}
