//! Payloads of every sender with bytes changed, dropped and doubled.

mod check;

use serde_json::{Value, json};

/// A documented payload of every sender.
fn examples() -> Vec<Value> {
    let commits = json!([{"id": "c1", "added": ["apps/a.yaml"], "modified": ["apps/b.yaml"], "removed": []}]);
    let address = "https://git.example.com/team/repo";
    vec![
        json!({
            "ref": "refs/heads/main", "before": "95790bf8", "after": "da1560886", "forced": false, "commits": commits,
            "repository": {"html_url": address, "clone_url": format!("{address}.git"), "default_branch": "main"},
        }),
        json!({
            "object_kind": "push", "ref": "refs/heads/main", "total_commits_count": 1, "commits": commits,
            "project": {"web_url": address, "git_http_url": format!("{address}.git"), "default_branch": "main"},
        }),
        json!({
            "repository": {"links": {"html": {"href": "https://bitbucket.org/team/repo"}}},
            "push": {"changes": [{"new": {"name": "main"}, "old": {"name": "main"}}]},
        }),
        json!({
            "repository": {"links": {"clone": [{"name": "http", "href": format!("{address}.git")}]}},
            "changes": [{"ref": {"id": "refs/heads/main"}}],
        }),
        json!({"resource": {
            "refUpdates": [{"name": "refs/heads/main"}],
            "repository": {"remoteUrl": "https://dev.azure.com/o/p/_git/r", "defaultBranch": "refs/heads/main"},
        }}),
        json!({"repoURL": address, "revision": "main", "changedFiles": ["a"]}),
    ]
}

#[test]
fn mutated_payloads_are_answered() {
    // A fixed sequence of pseudo-random numbers: a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let (mut n_payloads, mut n_pushes) = (0, 0);
    for payload in examples() {
        assert!(check::any_payload(payload.to_string().as_bytes()) > 0, "{payload}");
        for _ in 0..300 {
            let mut bytes = payload.to_string().into_bytes();
            for _ in 0..=next(3) {
                let at = next(bytes.len());
                match next(4) {
                    0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b"{}[]\",:0\\"[next(9)]),
                    _ => bytes.extend_from_within(at..),
                }
            }
            n_payloads += 1;
            n_pushes += usize::from(check::any_payload(&bytes) > 0);
        }
    }
    assert!(n_pushes * 10 > n_payloads && n_pushes < n_payloads, "{n_pushes} of {n_payloads} are pushes");
}
