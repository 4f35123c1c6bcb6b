use std::sync::Arc;

use plumb_core::app::CommitId;
use plumb_core::source::{EntryKind, RepoPath, SourceFiles as _, read_following};
use plumb_git::{GitOptions, Mirrors, RepoAccess, ResolveError, ResolveOrFetchError, RevisionSpec, Secret};

use crate::repository::{Repository, anonymous};

fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

fn commit_of(text: &str) -> CommitId {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_commit_is_fetched_resolved_and_read() {
    let repository = Repository::new();
    repository.write("apps/web/deployment.yaml", "kind: Deployment\n");
    repository.write("apps/web.yaml", "x\n");
    let first = repository.commit("first");
    let mirrors = repository.mirrors();

    let fetched = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    assert!(fetched.changed);
    let commit = fetched.mirror.resolve(&RevisionSpec::new("main")).unwrap();
    assert_eq!(commit, commit_of(&first));
    let tree = fetched.mirror.tree(&commit).unwrap();
    assert_eq!(tree.read(&path("apps/web/deployment.yaml")).unwrap(), b"kind: Deployment\n");
    let names: Vec<_> = tree.list(&path("apps")).unwrap().into_iter().map(|e| (e.name, e.kind)).collect();
    assert_eq!(names, [("web".to_owned(), EntryKind::Directory), ("web.yaml".to_owned(), EntryKind::File)]);
    assert!(tree.entry(&path("apps/nothing")).unwrap().is_none());
    assert!(tree.entry(&path("apps/web.yaml/below")).unwrap().is_none());
}

#[tokio::test]
async fn an_unchanged_server_is_asked_once_and_nothing_is_fetched() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let mirrors = repository.mirrors();
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    let again = mirrors.fetch(&url, &anonymous()).await.unwrap();
    assert!(!again.changed);
    assert_eq!((mirrors.requests().ls_remote, mirrors.requests().fetch), (2, 1));
    repository.write("a", "2");
    let second = repository.commit("second");
    let third = mirrors.fetch(&url, &anonymous()).await.unwrap();
    assert!(third.changed);
    assert_eq!(third.mirror.resolve(&RevisionSpec::default()).unwrap(), commit_of(&second));
}

#[tokio::test]
async fn many_callers_share_a_fetch_and_late_ones_wait_for_the_next() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let mirrors = Arc::new(repository.mirrors());
    let url = repository.url();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (mirrors, url) = (Arc::clone(&mirrors), url.clone());
            tokio::spawn(async move { mirrors.fetch(&url, &RepoAccess::default()).await.unwrap().changed })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let requests = mirrors.requests();
    assert!(requests.ls_remote <= 2, "{requests:?}");
    assert_eq!(requests.fetch, 1);
}

#[tokio::test]
async fn every_form_of_revision_resolves() {
    let repository = Repository::new();
    repository.write("a", "1");
    let first = repository.commit("first");
    repository.git(&["tag", "v1.0.0"]);
    repository.write("a", "2");
    let second = repository.commit("second");
    repository.git(&["tag", "--annotate", "v1.1.0", "--message", "annotated"]);
    repository.git(&["update-ref", "refs/pull/7/head", &first]);
    repository.git(&["branch", "feature/x", &first]);
    let mirrors = repository.mirrors();
    let url = repository.url();
    for (revision, expected) in [
        ("", &second),
        ("HEAD", &second),
        ("main", &second),
        ("feature/x", &first),
        ("v1.0.0", &first),
        ("v1.1.0", &second),
        ("refs/tags/v1.1.0", &second),
        ("^1.0", &second),
        ("refs/pull/7/head", &first),
        (&first[..8], &first),
        (&first, &first),
    ] {
        let (_, commit) = mirrors.resolve(&url, &anonymous(), &RevisionSpec::new(revision)).await.unwrap();
        assert_eq!(commit, commit_of(expected), "{revision}");
    }
    let missing = mirrors.resolve(&url, &anonymous(), &RevisionSpec::new("nope")).await.err().unwrap();
    assert!(matches!(missing, ResolveOrFetchError::Resolve(ResolveError::NotFound { .. })), "{missing}");
}

/// In a large repository the first digits of a commit are those of some file, too.
#[tokio::test]
async fn the_start_of_a_hash_means_a_commit_before_anything_else() {
    let repository = Repository::new();
    // The hashes of these two begin with the same seven digits.
    repository.write("a", "1400\n");
    repository.commit("a file");
    repository.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let text = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor t <t@example.com> 1000000000 +0000\n\
                committer t <t@example.com> 1000000000 +0000\n\n31884\n";
    let file = repository.path().join("../commit");
    std::fs::write(&file, text).unwrap();
    let commit = repository.git(&["hash-object", "-w", "-t", "commit", file.to_str().unwrap()]);
    repository.git(&["branch", "other", &commit]);
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    assert_eq!(commit[..7], blob[..7]);
    let (mirrors, url) = (repository.mirrors(), repository.url());
    let resolve = async |revision: &str| {
        let resolved = mirrors.resolve(&url, &anonymous(), &RevisionSpec::new(revision)).await;
        resolved.map(|(_, commit)| commit.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(resolve(&commit[..7]).await, Ok(commit.clone()));
    let error = resolve(&blob[..12]).await.unwrap_err();
    assert!(error.contains("is not a commit"), "{error}");
}

#[tokio::test]
async fn many_callers_share_the_fetch_of_a_ref_that_is_no_branch() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    repository.write("a", "2");
    let pulled = repository.commit("pull request");
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.git(&["update-ref", "refs/pull/7/head", &pulled]);
    let mirrors = Arc::new(repository.mirrors());
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    let by_hash = RevisionSpec::new(&pulled).or_on(["refs/pull/7/head"]);
    // The mirror itself is one fetch, and the ref beside it one more.
    for spec in [RevisionSpec::new("refs/pull/7/head"), by_hash] {
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let (mirrors, url, spec) = (Arc::clone(&mirrors), url.clone(), spec.clone());
                tokio::spawn(async move { mirrors.resolve(&url, &anonymous(), &spec).await.unwrap().1 })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), commit_of(&pulled));
        }
        assert_eq!(mirrors.requests().fetch, 2, "{spec:?}");
    }
}

#[tokio::test]
async fn many_callers_share_the_answer_that_there_is_no_such_commit() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let mirrors = Arc::new(repository.mirrors());
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (mirrors, url) = (Arc::clone(&mirrors), url.clone());
            let spec = RevisionSpec::new("1".repeat(40));
            tokio::spawn(async move { mirrors.resolve(&url, &anonymous(), &spec).await.is_err() })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
    assert!(mirrors.requests().fetch <= 3, "{:?}", mirrors.requests());
}

#[tokio::test]
async fn a_head_that_is_no_branch_resolves() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    repository.git(&["checkout", "--quiet", "--detach"]);
    repository.write("a", "2");
    let detached = repository.commit("detached");
    let mirrors = repository.mirrors();
    let url = repository.url();
    for revision in ["", "HEAD"] {
        let (mirror, commit) =
            mirrors.resolve(&url, &anonymous(), &RevisionSpec::new(revision)).await.unwrap();
        assert_eq!(commit, commit_of(&detached));
        assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"2");
    }
    repository.write("a", "3");
    let moved = repository.commit("moved");
    let mirror = mirrors.fetch(&url, &anonymous()).await.unwrap().mirror;
    assert_eq!(mirror.resolve(&RevisionSpec::default()).unwrap(), commit_of(&moved));
}

#[tokio::test]
async fn a_force_push_is_followed_and_the_old_commit_stays_readable() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    repository.write("a", "2");
    let old = repository.commit("second");
    let mirrors = repository.mirrors();
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.write("a", "3");
    let new = repository.commit("other");
    let mirror = mirrors.fetch(&url, &anonymous()).await.unwrap().mirror;
    assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap(), commit_of(&new));
    assert_eq!(mirror.tree(&commit_of(&old)).unwrap().read(&path("a")).unwrap(), b"2");
}

#[tokio::test]
async fn the_last_good_state_survives_a_dead_server_and_a_restart() {
    let repository = Repository::new();
    repository.write("a", "1");
    let first = repository.commit("first");
    let url = repository.url();
    repository.mirrors().fetch(&url, &anonymous()).await.unwrap();

    std::fs::rename(repository.path().join(".git"), repository.path().join("gone")).unwrap();
    let mirrors = repository.mirrors();
    let error = mirrors.fetch(&url, &anonymous()).await.err().unwrap();
    assert_eq!(error.category(), "refs");
    let mirror = mirrors.last_good(&url, &anonymous()).unwrap();
    assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap(), commit_of(&first));
}

#[tokio::test]
async fn other_credentials_do_not_read_what_they_did_not_fetch() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let mirrors = repository.mirrors();
    let url = repository.url();
    let with_token = RepoAccess { password: Some(Secret::new("token")), ..RepoAccess::default() };
    mirrors.fetch(&url, &with_token).await.unwrap();
    assert!(mirrors.last_good(&url, &with_token).is_some());
    assert!(mirrors.last_good(&url, &anonymous()).is_none());
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    assert!(mirrors.last_good(&url, &anonymous()).is_some());
}

#[tokio::test]
async fn a_damaged_mirror_is_built_anew() {
    let repository = Repository::new();
    repository.write("a", "some content that ends up in an object");
    repository.commit("first");
    let url = repository.url();
    let mirrors = repository.mirrors();
    let mirror = mirrors.fetch(&url, &anonymous()).await.unwrap().mirror;
    let commit = mirror.resolve(&RevisionSpec::default()).unwrap();
    damage_objects(&repository.cache());

    let mirrors = repository.mirrors();
    assert!(mirrors.last_good(&url, &anonymous()).is_none(), "the files are not those that plumb wrote");
    let mirror = mirrors.fetch(&url, &anonymous()).await.unwrap().mirror;
    assert_eq!(
        mirror.tree(&commit).unwrap().read(&path("a")).unwrap(),
        b"some content that ends up in an object"
    );
}

#[tokio::test]
async fn damage_that_only_the_next_fetch_meets_is_repaired() {
    let repository = Repository::new();
    repository.write("a", "some content that ends up in an object");
    repository.commit("first");
    let url = repository.url();
    repository.mirrors().fetch(&url, &anonymous()).await.unwrap();
    damage_objects(&repository.cache());
    repository.write("b", "2");
    let second = commit_of(&repository.commit("second"));

    let mirror = repository.mirrors().fetch(&url, &anonymous()).await.unwrap().mirror;
    assert_eq!(mirror.tree(&second).unwrap().read(&path("b")).unwrap(), b"2");
}

#[tokio::test]
async fn a_commit_that_the_server_lacks_is_no_reason_to_look_for_damage() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let (script, log) = (repository.path().join("../git.sh"), repository.path().join("../log"));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$1\" >> {}\nexec git \"$@\"\n", log.display()))
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let options = GitOptions { program: script, ..GitOptions::default() };
    let mirrors = Mirrors::new(repository.cache(), options).unwrap();
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    let missing = RevisionSpec::new("1".repeat(40));
    assert!(mirrors.resolve(&url, &anonymous(), &missing).await.is_err());
    let commands = std::fs::read_to_string(log).unwrap();
    assert_eq!(commands.lines().filter(|command| *command == "fetch").count(), 1, "{commands}");
    assert!(!commands.contains("fsck"), "{commands}");
}

#[tokio::test]
async fn private_files_of_a_process_that_was_killed_are_removed() {
    let repository = Repository::new();
    let left = repository.cache().join("git-left");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("key"), "secret").unwrap();
    let first = repository.mirrors();
    assert!(!left.exists());
    std::fs::create_dir(&left).unwrap();
    let _second = repository.mirrors();
    assert!(left.exists(), "another process uses it");
    drop(first);
}

/// Overwrites every object file below the cache.
fn damage_objects(directory: &std::path::Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damage_objects(&path);
        } else if path.components().any(|part| part.as_os_str() == "objects") {
            let mut permissions = std::fs::metadata(&path).unwrap().permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
            std::fs::set_permissions(&path, permissions).unwrap();
            std::fs::write(&path, "garbage").unwrap();
        }
    }
}

#[tokio::test]
async fn links_are_followed_inside_only() {
    let repository = Repository::new();
    repository.write("real/file", "inside");
    for (link, target) in [
        ("ok", "real/file"),
        ("dir", "real"),
        ("absolute", "/etc/passwd"),
        ("up", "../../../etc/passwd"),
        ("sly", "dir/../../etc/passwd"),
        ("chain1", "chain2"),
        ("chain2", "/etc/passwd"),
        ("loop1", "loop2"),
        ("loop2", "loop1"),
    ] {
        std::os::unix::fs::symlink(target, repository.path().join(link)).unwrap();
    }
    repository.commit("links");
    let mirrors = repository.mirrors();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::default()).await.unwrap();
    let tree = mirror.tree(&commit).unwrap();
    assert_eq!(read_following(&tree, &path("ok")).unwrap(), b"inside");
    assert_eq!(read_following(&tree, &path("dir/file")).unwrap(), b"inside");
    for (link, word) in [
        ("absolute", "outside"),
        ("up", "outside"),
        ("sly", "outside"),
        ("chain1", "outside"),
        ("loop1", "more than 40 links"),
    ] {
        let error = read_following(&tree, &path(link)).unwrap_err().to_string();
        assert!(error.contains(word), "{link}: {error}");
    }
}

#[tokio::test]
async fn the_cache_itself_is_no_repository() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let mirrors = repository.mirrors();
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    let inside = repository.mirrored().parent().unwrap().to_owned();
    let url = plumb_git::RepoUrl::parse(&format!("{}/repo-0.git", inside.display())).unwrap();
    let error = mirrors.fetch(&url, &anonymous()).await.err().unwrap();
    assert!(error.to_string().contains("own cache"), "{error}");
}

#[tokio::test]
async fn every_commit_is_one_fetch_whatever_the_number_of_apps() {
    const APPS: usize = 500;
    const COMMITS: u64 = if cfg!(debug_assertions) { 12 } else { 60 };
    let repository = Repository::new();
    for app in 0..APPS {
        repository.write(&format!("apps/{app}/cm.yaml"), "version: 0\n");
    }
    repository.commit("first");
    let mirrors = Arc::new(repository.mirrors());
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();
    let before = mirrors.requests();
    let started = std::time::Instant::now();
    for n in 1..=COMMITS {
        repository.write(&format!("apps/{}/cm.yaml", n * 7), &format!("version: {n}\n"));
        let commit = repository.commit("change");
        let calls: Vec<_> = (0..APPS)
            .map(|_| {
                let (mirrors, url) = (Arc::clone(&mirrors), url.clone());
                tokio::spawn(async move { mirrors.fetch(&url, &RepoAccess::default()).await.unwrap().mirror })
            })
            .collect();
        for call in calls {
            let mirror = call.await.unwrap();
            assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap().as_str(), commit);
        }
    }
    let after = mirrors.requests();
    println!("{COMMITS} commits, {APPS} callers each: {:?}", started.elapsed());
    assert_eq!(after.fetch - before.fetch, COMMITS);
    assert!(after.ls_remote - before.ls_remote <= 2 * COMMITS, "{after:?}");
}

proptest::proptest! {
    #[test]
    fn no_address_is_read_as_an_option_or_a_helper(text in "[-a-z:/@. ]{0,40}") {
        if let Ok(url) = plumb_git::RepoUrl::parse(&text) {
            let address = url.as_str();
            proptest::prop_assert!(!address.starts_with('-'), "{address}");
            let is_local = url.transport() == plumb_git::Transport::File;
            let is_plain = is_local || address.contains("://") || !address.contains("::");
            proptest::prop_assert!(is_plain, "{address}");
            proptest::prop_assert!(!url.host().starts_with('-'), "{address}");
        }
    }
}
