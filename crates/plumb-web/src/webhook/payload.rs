//! Converts the payload of each sender to a [`Push`].

use plumb_engine::{Push, short_name};
use serde_json::Value;

use super::sender::Sender;

/// A parsed body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Push(Push),
    /// An event that is not a push.
    Other,
}

/// Deepest nesting, more than any sender uses. Deeper documents could exhaust the parser's stack.
const MAX_NESTING: usize = 64;

/// Parses a body whose sender is verified.
pub(super) fn read(sender: Sender, event: &str, body: &[u8]) -> Result<Event, String> {
    let is_push = match sender {
        Sender::GitHub | Sender::Gogs | Sender::Generic => event == "push",
        Sender::GitLab => matches!(event, "Push Hook" | "Tag Push Hook" | "System Hook"),
        Sender::BitbucketCloud => event == "repo:push",
        Sender::BitbucketServer => event == "repo:refs_changed",
        Sender::AzureDevOps => true,
    };
    if !is_push {
        return Ok(Event::Other);
    }
    if depth(body) > MAX_NESTING {
        return Err("the body is nested too deeply".to_owned());
    }
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let push = match sender {
        Sender::GitHub | Sender::Gogs => {
            let repository = &body["repository"];
            by_ref(&body, &[&repository["html_url"], &repository["clone_url"]], &repository["default_branch"])
        }
        Sender::GitLab => {
            let kind = body["object_kind"].as_str().or_else(|| body["event_name"].as_str());
            if !matches!(kind, Some("push" | "tag_push")) {
                return Ok(Event::Other);
            }
            let project = &body["project"];
            by_ref(&body, &[&project["web_url"], &project["git_http_url"]], &project["default_branch"])
        }
        Sender::BitbucketCloud => bitbucket_cloud(&body),
        Sender::BitbucketServer => bitbucket_server(&body),
        Sender::AzureDevOps => azure_devops(&body),
        Sender::Generic => generic(&body),
    };
    if push.repositories.is_empty() {
        return Err("the body names no repository".to_owned());
    }
    Ok(Event::Push(push))
}

/// GitHub, Gogs, Gitea and GitLab: one ref, and commits with their files.
fn by_ref(body: &Value, addresses: &[&Value], default_branch: &Value) -> Push {
    let revision = short_name(body["ref"].as_str().unwrap_or_default());
    let is_tag = body["ref"].as_str().is_some_and(|name| name.starts_with("refs/tags/"));
    let commits = body["commits"].as_array().into_iter().flatten();
    let files = commits.flat_map(|commit| {
        ["added", "modified", "removed"].into_iter().flat_map(move |list| texts(&commit[list]))
    });
    Push {
        repositories: addresses.iter().filter_map(|address| non_empty(address)).collect(),
        touches_default: !is_tag && default_branch.as_str() == Some(revision),
        revisions: one(revision),
        changed_files: if is_whole(body) { files.collect() } else { Vec::new() },
    }
}

/// False if the list of commits does not show all changed files: each server truncates it at some number, and a push
/// may create, delete or rewrite a branch.
fn is_whole(body: &Value) -> bool {
    let n_commits = body["commits"].as_array().map_or(0, Vec::len);
    let announced = body["total_commits_count"].as_u64().or_else(|| body["total_commits"].as_u64());
    let is_new = [&body["before"], &body["after"]]
        .iter()
        .any(|hash| hash.as_str().is_some_and(|hash| hash.chars().all(|digit| digit == '0')));
    let counted = announced.is_none_or(|announced| u64::try_from(n_commits).is_ok_and(|n| n == announced));
    // GitHub sends at most this many.
    counted && n_commits < 20 && !is_new && body["forced"] != true
}

/// Bitbucket Cloud names neither the default branch nor files.
fn bitbucket_cloud(body: &Value) -> Push {
    let changes = body["push"]["changes"].as_array().into_iter().flatten();
    let names = changes.flat_map(|change| [&change["new"]["name"], &change["old"]["name"]]);
    let mut revisions: Vec<String> = names.filter_map(non_empty).collect();
    revisions.dedup();
    Push {
        repositories: non_empty(&body["repository"]["links"]["html"]["href"]).into_iter().collect(),
        revisions,
        touches_default: true,
        changed_files: Vec::new(),
    }
}

/// Bitbucket Server names the addresses that can be cloned, by transport.
fn bitbucket_server(body: &Value) -> Push {
    let clones = body["repository"]["links"]["clone"].as_array().into_iter().flatten();
    let changes = body["changes"].as_array().into_iter().flatten();
    Push {
        repositories: clones.filter_map(|link| non_empty(&link["href"])).collect(),
        revisions: changes
            .filter_map(|change| Some(short_name(change["ref"]["id"].as_str()?).to_owned()))
            .collect(),
        touches_default: true,
        changed_files: Vec::new(),
    }
}

fn azure_devops(body: &Value) -> Push {
    let resource = &body["resource"];
    let default = resource["repository"]["defaultBranch"].as_str();
    let names: Vec<&str> = resource["refUpdates"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|update| update["name"].as_str())
        .collect();
    Push {
        repositories: non_empty(&resource["repository"]["remoteUrl"]).into_iter().collect(),
        touches_default: default.is_none_or(|default| names.contains(&default)),
        revisions: names.into_iter().map(|name| short_name(name).to_owned()).collect(),
        changed_files: Vec::new(),
    }
}

/// plumb's own: `{"repoURL": "…", "revision": "main", "changedFiles": ["…"]}`. Without a revision any may have
/// moved, and the default branch with it.
fn generic(body: &Value) -> Push {
    let revision = non_empty(&body["revision"]).map(|revision| short_name(&revision).to_owned());
    Push {
        repositories: non_empty(&body["repoURL"]).into_iter().collect(),
        touches_default: body["defaultBranch"]
            .as_str()
            .is_none_or(|default| revision.as_deref().is_none_or(|revision| revision == default)),
        revisions: revision.into_iter().collect(),
        changed_files: texts(&body["changedFiles"]).collect(),
    }
}

fn one(revision: &str) -> Vec<String> {
    if revision.is_empty() { Vec::new() } else { vec![revision.to_owned()] }
}

fn non_empty(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().filter_map(non_empty)
}

/// How deep brackets are nested, counted without building anything. Brackets inside texts count too, which only
/// errs to the safe side.
fn depth(body: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    let mut in_text = false;
    let mut escaped = false;
    for byte in body {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

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
    fn depth_is_bounded() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(Sender::GitHub, "push", deep.as_bytes()).is_err());
        assert_eq!(depth(br#"{"a": ["{{{", "\"[["]}"#), 2);
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
}
