//! Refs, hashes and objects that pretend to be others.

use plumb_core::source::SourceFiles as _;
use plumb_git::{Mirrors, RepoAccess, RevisionSpec};

use crate::hostile::{path, whole};
use crate::repository::{Repository, anonymous, run};

/// What a revision resolves to, or the message.
async fn resolve(mirrors: &Mirrors, repository: &Repository, spec: &RevisionSpec) -> Result<String, String> {
    let resolved = mirrors.resolve(&repository.url(), &anonymous(), spec).await;
    resolved.map(|(_, commit)| commit.to_string()).map_err(|error| whole(&error))
}

async fn by_name(mirrors: &Mirrors, repository: &Repository, revision: &str) -> Result<String, String> {
    resolve(mirrors, repository, &RevisionSpec::new(revision)).await
}

/// Commits a change that stays on no branch.
fn aside(repository: &Repository, content: &str) -> String {
    repository.write("a", content);
    let commit = repository.commit(content);
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    commit
}

#[tokio::test]
async fn a_ref_that_one_app_names_in_full_changes_no_name_of_another() {
    let repository = Repository::new();
    repository.write("a", "good");
    let good = repository.commit("good");
    repository.git(&["branch", "env/prod"]);
    let evil = aside(&repository, "evil");
    repository.git(&["update-ref", "refs/env/prod", &evil]);
    let mirrors = repository.mirrors();
    assert_eq!(by_name(&mirrors, &repository, "refs/env/prod").await, Ok(evil.clone()));
    for name in ["env/prod", "refs/heads/env/prod"] {
        assert_eq!(by_name(&mirrors, &repository, name).await, Ok(good.clone()), "{name}");
    }
    assert!(by_name(&mirrors, &repository, "heads/env/prod").await.is_err());

    // It moves with the server, and goes with it.
    repository.git(&["update-ref", "refs/env/prod", &good]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    assert_eq!(by_name(&mirrors, &repository, "refs/env/prod").await, Ok(good.clone()));
    repository.git(&["update-ref", "-d", "refs/env/prod"]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    let error = by_name(&mirrors, &repository, "refs/env/prod").await.unwrap_err();
    assert!(error.contains("is not a branch, tag or commit"), "{error}");
    let left = run(&repository.mirrored(), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(left, "refs/heads/env/prod\nrefs/heads/main");
}

#[tokio::test]
async fn refs_in_the_mirror_that_plumb_did_not_put_there_are_not_believed() {
    let repository = Repository::new();
    repository.write("a", "good");
    let good = repository.commit("good");
    repository.git(&["branch", "env/prod"]);
    repository.git(&["branch", "other"]);
    repository.git(&["checkout", "--quiet", "other"]);
    repository.write("a", "evil");
    let evil = repository.commit("evil");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.mirrors().fetch(&repository.url(), &anonymous()).await.unwrap();
    for name in ["refs/env/prod", "refs/plumb/env/prod", "refs/heads/HEAD", "refs/plumb/head"] {
        run(&repository.mirrored(), &["update-ref", name, &evil]);
    }
    let mirrors = repository.mirrors();
    for name in ["env/prod", "HEAD", ""] {
        assert_eq!(by_name(&mirrors, &repository, name).await, Ok(good.clone()), "{name}");
    }
    assert!(by_name(&mirrors, &repository, "refs/env/prod").await.is_err());
}

#[tokio::test]
async fn mirrors_of_earlier_versions_are_made_anew() {
    let repository = Repository::new();
    let old = repository.cache().join("0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(old.join("repo-0.git")).unwrap();
    let _mirrors = repository.mirrors();
    assert!(!old.exists());
}

#[tokio::test]
async fn nothing_takes_the_place_of_an_object() {
    let repository = Repository::new();
    repository.write("a", "good");
    repository.commit("good");
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    let evil = aside(&repository, "evil");
    let evil_blob = repository.git(&["rev-parse", &format!("{evil}:a")]);
    repository.git(&["update-ref", "refs/env/evil", &evil]);
    repository.git(&["update-ref", &format!("refs/replace/{blob}"), &evil_blob]);
    let mirrors = repository.mirrors();
    for revision in [format!("refs/replace/{blob}"), "refs/plumb/head".to_owned()] {
        let error = by_name(&mirrors, &repository, &revision).await.unwrap_err();
        assert!(error.contains("uses for itself"), "{error}");
    }
    by_name(&mirrors, &repository, "refs/env/evil").await.unwrap();
    let refs = run(&repository.mirrored(), &["for-each-ref"]);
    assert!(!refs.contains("replace"), "{refs}");

    // Even if it were there, it would have no effect.
    run(&repository.mirrored(), &["update-ref", &format!("refs/replace/{blob}"), &evil_blob]);
    let mirrors = repository.mirrors();
    let main = RevisionSpec::new("main");
    let (mirror, commit) = mirrors.resolve(&repository.url(), &anonymous(), &main).await.unwrap();
    assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"good");
}

#[tokio::test]
async fn a_mirror_that_takes_objects_from_elsewhere_is_made_anew() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let elsewhere = Repository::new();
    for (file, text) in [
        ("objects/info/alternates", elsewhere.path().join(".git/objects").display().to_string()),
        ("info/grafts", "0".repeat(40)),
    ] {
        repository.mirrors().fetch(&repository.url(), &anonymous()).await.unwrap();
        let file = repository.mirrored().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        let mirrors = repository.mirrors();
        assert!(mirrors.last_good(&repository.url(), &anonymous()).is_none());
        by_name(&mirrors, &repository, "main").await.unwrap();
        assert!(!file.exists());
    }
}

#[tokio::test]
async fn a_hash_counts_only_on_a_branch_a_tag_or_a_ref_that_the_same_app_names() {
    let repository = Repository::new();
    repository.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    repository.write("a", "1");
    let first = repository.commit("first");
    let tagged = aside(&repository, "tagged");
    repository.git(&["tag", "-a", "-m", "x", "v1", &tagged]);
    let pulled = aside(&repository, "of a pull request");
    repository.git(&["update-ref", "refs/pull/7/head", &pulled]);
    let forked = aside(&repository, "of a fork");
    repository.commit("second");
    let mirrors = repository.mirrors();
    for commit in [&first, &tagged] {
        assert_eq!(by_name(&mirrors, &repository, commit).await, Ok(commit.clone()));
        assert_eq!(by_name(&mirrors, &repository, &commit[..10]).await, Ok(commit.clone()));
    }
    // One app names the ref, so the mirror has its commit. That is nothing to other apps.
    assert_eq!(by_name(&mirrors, &repository, "refs/pull/7/head").await, Ok(pulled.clone()));
    for revision in [pulled.as_str(), &forked, &pulled[..10]] {
        let error = by_name(&mirrors, &repository, revision).await.unwrap_err();
        assert!(error.contains("is on no branch or tag of"), "{revision}: {error}");
    }
    let of_fork = RevisionSpec::new(&forked).or_on(["refs/pull/7/head"]);
    assert!(resolve(&mirrors, &repository, &of_fork).await.unwrap_err().contains("on no branch or tag"));
    let of_pull = RevisionSpec::new(&pulled).or_on(["main", "refs/pull/7/head"]);
    assert_eq!(resolve(&mirrors, &repository, &of_pull).await, Ok(pulled.clone()));
    // The answer for one app is not the answer for another.
    assert!(by_name(&mirrors, &repository, &pulled).await.is_err());
    // A commit that was pushed since the last fetch is found.
    let third = repository.commit("third");
    assert_eq!(by_name(&mirrors, &repository, &third).await, Ok(third));
}

#[tokio::test]
async fn a_commit_that_was_on_a_branch_can_be_used_after_a_force_push() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    repository.write("a", "2");
    let old = repository.commit("second");
    let mirrors = repository.mirrors();
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.write("a", "3");
    repository.commit("other");
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    for mirrors in [mirrors, repository.mirrors()] {
        assert_eq!(by_name(&mirrors, &repository, &old).await, Ok(old.clone()));
    }
}

/// git itself fetches such a commit, and the authors of the outer repository could have added the files.
#[tokio::test]
async fn the_commit_of_a_submodule_need_not_be_on_a_branch() {
    let library = Repository::new();
    library.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    library.write("a", "1");
    library.commit("first");
    let squashed = aside(&library, "squashed");
    let repository = Repository::new();
    let address = library.path().display().to_string();
    repository.write(".gitmodules", &format!("[submodule \"x\"]\n\tpath = lib\n\turl = {address}\n"));
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{squashed},lib")]);
    repository.git(&["add", ".gitmodules"]);
    repository.git(&["commit", "--quiet", "-m", "submodule"]);
    let mirrors = repository.mirrors();
    let main = RevisionSpec::new("main");
    let (mirror, commit) = mirrors.resolve(&repository.url(), &anonymous(), &main).await.unwrap();
    for _ in 0..2 {
        let tree =
            mirrors.tree_with_submodules(&mirror, &commit, &|_| Ok(RepoAccess::default())).await.unwrap();
        assert_eq!(tree.read(&path("lib/a")).unwrap(), b"squashed");
    }
    // As a source of its own it is on no branch.
    let error = by_name(&mirrors, &library, &squashed).await.unwrap_err();
    assert!(error.contains("on no branch or tag"), "{error}");
}

/// The names of refs beside branches must not make the start of a hash ambiguous.
#[tokio::test]
async fn commits_beside_the_branches_do_not_make_a_prefix_ambiguous() {
    let repository = Repository::new();
    repository.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let make = |number: u32| {
        let text = format!(
            "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor t <t@example.com> 1000000000 +0000\n\
             committer t <t@example.com> 1000000000 +0000\n\n{number}\n"
        );
        let file = repository.path().join("../commit");
        std::fs::write(&file, text).unwrap();
        repository.git(&["hash-object", "-w", "-t", "commit", file.to_str().unwrap()])
    };
    // The hashes of these two commits begin with the same seven digits.
    let (honest, evil) = (make(HONEST), make(EVIL));
    assert_eq!(honest[..7], evil[..7]);
    repository.git(&["update-ref", "refs/heads/main", &honest]);
    repository.git(&["update-ref", "refs/env/evil", &evil]);
    let mirrors = repository.mirrors();
    assert_eq!(by_name(&mirrors, &repository, "refs/env/evil").await, Ok(evil.clone()));
    assert_eq!(by_name(&mirrors, &repository, &honest[..7]).await, Ok(honest.clone()));
    repository.git(&["update-ref", "refs/heads/evil", &evil]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    let error = by_name(&mirrors, &repository, &honest[..7]).await.unwrap_err();
    assert!(error.contains("prefix of more than one commit"), "{error}");
}

const HONEST: u32 = 11_944;
const EVIL: u32 = 29_694;

/// On a workstation the cache may be below some checkout.
#[tokio::test]
async fn a_repository_around_the_cache_has_no_say() {
    let repository = Repository::new();
    repository.write("a", "1");
    let commit = repository.commit("first");
    let around = repository.path().parent().unwrap().to_owned();
    run(&around, &["init", "--quiet"]);
    let from = repository.path().display().to_string();
    run(&around, &["config", "url./nowhere/.insteadOf", &from]);
    assert_eq!(by_name(&repository.mirrors(), &repository, "main").await, Ok(commit));
}

/// A `HEAD` that points to something else than a branch is its commit.
#[tokio::test]
async fn a_head_that_points_elsewhere_resolves_to_its_commit_only() {
    let repository = Repository::new();
    repository.write("a", "1");
    let main = repository.commit("first");
    let other = aside(&repository, "other");
    repository.git(&["update-ref", "refs/env/prod", &other]);
    repository.git(&["branch", "same", "main"]);
    repository.git(&["symbolic-ref", "HEAD", "refs/env/prod"]);
    let mirrors = repository.mirrors();
    assert_eq!(by_name(&mirrors, &repository, "HEAD").await, Ok(other));
    assert_eq!(by_name(&mirrors, &repository, "main").await, Ok(main));
    assert!(by_name(&mirrors, &repository, "env/prod").await.is_err());
}
