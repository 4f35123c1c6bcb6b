use plumb_engine::Push;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::payload::{Event, read};
use super::sender::Sender;

fn push(sender: Sender, event: &str, body: &Value) -> Push {
    match read(sender, event, body.to_string().as_bytes()) {
        Ok(Event::Push(push)) => push,
        other => panic!("{other:?}"),
    }
}

#[test]
fn github_names_branch_files_and_default() {
    let body = json!({
        "ref": "refs/heads/feature/a", "before": "11", "after": "22", "forced": false,
        "repository": {"html_url": "https://github.com/o/r", "clone_url": "https://github.com/o/r.git", "default_branch": "main"},
        "commits": [{"added": ["a"], "modified": ["b/c"], "removed": []}, {"added": [], "modified": [], "removed": ["d"]}],
    });
    let seen = push(Sender::GitHub, "push", &body);
    assert_eq!(seen.revisions, ["feature/a"]);
    assert_eq!(seen.changed_files, ["a", "b/c", "d"]);
    assert!(!seen.touches_default);
    assert_eq!(seen.repositories, ["https://github.com/o/r", "https://github.com/o/r.git"]);
    let mut main = body.clone();
    main["ref"] = json!("refs/heads/main");
    assert!(push(Sender::GitHub, "push", &main).touches_default);
    main["forced"] = json!(true);
    assert!(push(Sender::GitHub, "push", &main).changed_files.is_empty(), "another history: any file");
    main["ref"] = json!("refs/tags/main");
    assert!(!push(Sender::GitHub, "push", &main).touches_default, "a tag is not the branch of its name");
    assert_eq!(read(Sender::GitHub, "ping", b"{}"), Ok(Event::Other));
}

#[test]
fn gitlab_names_its_project() {
    let body = json!({
        "object_kind": "push", "ref": "refs/heads/main", "total_commits_count": 30,
        "project": {"web_url": "https://gitlab.com/g/s/r", "default_branch": "main"},
        "commits": [{"added": ["a"]}],
    });
    let seen = push(Sender::GitLab, "Push Hook", &body);
    assert!(seen.touches_default && seen.changed_files.is_empty(), "29 commits are not shown");
    let issue = json!({"object_kind": "issue"}).to_string();
    assert_eq!(read(Sender::GitLab, "System Hook", issue.as_bytes()), Ok(Event::Other));
}

#[test]
fn bitbucket_does_not_say_which_branch_is_the_default() {
    let cloud = json!({
        "repository": {"links": {"html": {"href": "https://bitbucket.org/o/r"}}},
        "push": {"changes": [{"new": {"name": "main"}, "old": {"name": "main"}}, {"new": null, "old": {"name": "gone"}}]},
    });
    let seen = push(Sender::BitbucketCloud, "repo:push", &cloud);
    assert_eq!(
        (seen.revisions.as_slice(), seen.touches_default),
        (&["main".to_owned(), "gone".to_owned()][..], true)
    );
    let server = json!({
        "repository": {"links": {"clone": [
            {"name": "http", "href": "https://bb.example.com/scm/p/r.git"},
            {"name": "ssh", "href": "ssh://git@bb.example.com:7999/p/r.git"}]}},
        "changes": [{"ref": {"id": "refs/heads/main"}}, {"ref": {"id": "refs/tags/v1"}}],
    });
    let seen = push(Sender::BitbucketServer, "repo:refs_changed", &server);
    assert_eq!((seen.repositories.len(), seen.revisions), (2, vec!["main".to_owned(), "v1".to_owned()]));
}

#[test]
fn azure_and_the_generic_form() {
    let body = json!({"resource": {
        "refUpdates": [{"name": "refs/heads/main"}],
        "repository": {"remoteUrl": "https://dev.azure.com/o/p/_git/r", "defaultBranch": "refs/heads/main"}}});
    assert!(push(Sender::AzureDevOps, "", &body).touches_default);
    let seen =
        push(Sender::Generic, "push", &json!({"repoURL": "file:///srv/r", "revision": "refs/heads/x"}));
    assert_eq!((seen.revisions, seen.touches_default), (vec!["x".to_owned()], true));
    assert!(read(Sender::Generic, "push", b"{}").is_err());
}

#[test]
fn changes_of_pull_requests_name_their_repository() {
    let told =
        |sender: Sender, event: &str, body: Value| match read(sender, event, body.to_string().as_bytes()) {
            Ok(Event::Push(Push { pull_requests: Some(place), .. })) => {
                let number = place.number.map(|number| format!(" #{number}")).unwrap_or_default();
                format!("{:?} {} {} {}{number}", place.provider, place.host, place.owner, place.repo)
            }
            other => format!("{other:?}"),
        };
    let github = |action: &str| {
        json!({"action": action, "repository": {"name": "r", "owner": {"login": "o"},
               "url": "https://ghe.example:8443/api/v3/repos/o/r", "html_url": "https://ghe.example/o/r"}})
    };
    assert_eq!(told(Sender::GitHub, "pull_request", github("opened")), "GitHub ghe.example o r");
    assert_eq!(told(Sender::GitHub, "pull_request", github("assigned")), "Ok(Other)");
    assert_eq!(told(Sender::Gogs, "pull_request_sync", github("synchronized")), "Gitea ghe.example o r");
    let gitlab = |kind: &str, action: &str| {
        json!({"object_kind": kind, "object_attributes": {"action": action, "target_project_id": 7},
               "project": {"web_url": "https://gitlab.com/g/p", "path_with_namespace": "g/p"}})
    };
    let merge = told(Sender::GitLab, "Merge Request Hook", gitlab("merge_request", "merge"));
    assert_eq!(merge, "GitLab gitlab.com  g/p #7");
    assert_eq!(told(Sender::GitLab, "System Hook", gitlab("merge_request", "open")), merge);
    assert_eq!(told(Sender::GitLab, "Merge Request Hook", gitlab("merge_request", "approved")), "Ok(Other)");
    let cloud = json!({"repository": {"full_name": "o/r"}});
    assert_eq!(told(Sender::BitbucketCloud, "pullrequest:created", cloud), "BitbucketCloud  o r");
    let server = json!({"pullRequest": {"toRef": {"repository": {"slug": "r", "project": {"key": "P"}}}}});
    assert_eq!(told(Sender::BitbucketServer, "pr:opened", server), "BitbucketServer  P r");
    let azure = json!({"eventType": "git.pullrequest.updated",
                       "resource": {"repository": {"name": "r", "project": {"name": "p"}}}});
    assert_eq!(told(Sender::AzureDevOps, "", azure), "AzureDevOps  p r");
}

/// Payloads end no process, whatever they hold (CVE-2024-40634, CVE-2025-59531, CVE-2025-59537, CVE-2025-59538).
#[test]
fn depth_costs_no_stack() {
    for (open, close) in [("[", "]"), ("{\"commits\":[", "]}"), ("{\"repository\":", "}")] {
        let deep = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        assert!(read(Sender::GitHub, "push", deep.as_bytes()).is_err(), "{open}");
    }
}

#[test]
fn a_field_of_another_type_is_absent_and_the_error_quotes_nothing() {
    let body = json!({
        "ref": ["refs/heads/main"], "commits": {"a": 1}, "total_commits": "many", "forced": "yes", "before": 7,
        "repository": {"html_url": "https://github.com/o/r", "clone_url": {"no": "text"}, "default_branch": null},
    });
    let seen = push(Sender::GitHub, "push", &body);
    assert_eq!((seen.repositories.len(), seen.revisions.len(), seen.touches_default), (1, 0, false));
    let error = read(Sender::GitHub, "push", b"{\"ref\": \"x\", secret-of-the-sender}").unwrap_err();
    assert_eq!(error, "the body is not JSON as documented: line 1, column 14");
}

#[test]
fn long_lists_are_cut_and_then_any_file_may_have_changed() {
    let files: Vec<String> = (0..4000).map(|n| format!("f{n}")).collect();
    let of = |commits: Value| json!({"ref": "refs/heads/main", "commits": commits, "repository": {"html_url": "https://github.com/o/r"}});
    let few =
        push(Sender::GitHub, "push", &of(json!([{"added": files[..2000]}, {"removed": files[..2000]}])));
    assert_eq!(few.changed_files.len(), 4000);
    let long = push(Sender::GitHub, "push", &of(json!([{"added": files}])));
    assert_eq!(long.changed_files, Vec::<String>::new(), "one list is too long");
    let many: Vec<Value> = (0..6).map(|_| json!({"modified": files[..2000]})).collect();
    assert_eq!(push(Sender::GitHub, "push", &of(json!(many))).changed_files.len(), 0, "together too many");
    let changes: Vec<Value> = (0..5000).map(|n| json!({"ref": {"id": format!("refs/heads/b{n}")}})).collect();
    let links: Vec<Value> = (0..50).map(|n| json!({"href": format!("https://bb.example.com/{n}")})).collect();
    let server = json!({"repository": {"links": {"clone": links}}, "changes": changes});
    let seen = push(Sender::BitbucketServer, "repo:refs_changed", &server);
    assert_eq!((seen.repositories.len(), seen.revisions.len()), (8, 1000));
}

/// A flood of small values costs no memory: they are skipped, not stored.
#[test]
fn a_flood_of_small_values_is_skipped() {
    let flood = format!(
        "{{\"repository\": {{\"html_url\": \"https://h/o/r\"}}, \"x\": [{}0]}}",
        "{\"\":0},".repeat(120_000)
    );
    let seen = read(Sender::GitHub, "push", flood.as_bytes());
    assert!(matches!(seen, Ok(Event::Push(push)) if push.repositories == ["https://h/o/r"]));
}

proptest! {
    /// Whatever comes, there is an answer.
    #[test]
    fn any_bytes_are_answered(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        for sender in [Sender::GitHub, Sender::GitLab, Sender::BitbucketCloud, Sender::BitbucketServer, Sender::AzureDevOps, Sender::Generic] {
            let _ = read(sender, "push", &body);
        }
    }

    #[test]
    fn any_json_is_answered(text in "[\\[\\]{}:,\"a-z0-9 ]{0,200}", name in "[a-z_]{0,12}") {
        let body = json!({"ref": text, "repository": name, "commits": [text], "push": {"changes": [name]}, "project": [text]});
        for (sender, event) in [(Sender::GitHub, "push"), (Sender::GitLab, "Push Hook"), (Sender::BitbucketCloud, "repo:push"), (Sender::BitbucketServer, "repo:refs_changed"), (Sender::Generic, "push")] {
            let _ = read(sender, event, body.to_string().as_bytes());
        }
    }
}
