//! Whether two commits have a history in common.

use plumb_core::app::CommitId;
use plumb_git::Relation::{Gone, Related, Unrelated};
use plumb_git::{Relation, RevisionSpec};

use crate::repository::{Repository, anonymous};

fn commit_of(text: &str) -> CommitId {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_replaced_history_has_nothing_in_common() {
    let repository = Repository::new();
    repository.write("a", "1");
    let first = repository.commit("first");
    repository.write("a", "2");
    let second = repository.commit("second");
    let mirrors = repository.mirrors();
    let relation = async |earlier: &str, commit: &str| -> Relation {
        mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
        let (earlier, commit) = (commit_of(earlier), commit_of(commit));
        mirrors.relation(&repository.url(), &anonymous(), &earlier, &commit).await.unwrap()
    };
    assert_eq!(relation(&first, &first).await, Related);
    assert_eq!(relation(&first, &second).await, Related, "a push");
    assert_eq!(relation(&second, &first).await, Related, "a revert by a force push");
    repository.git(&["reset", "--quiet", "--hard", &first]);
    repository.write("a", "3");
    let rebased = repository.commit("another second");
    assert_eq!(relation(&second, &rebased).await, Related, "a force push");
    repository.git(&["checkout", "--quiet", "--orphan", "other"]);
    repository.write("a", "4");
    let orphan = repository.commit("another history");
    repository.git(&["branch", "--force", "main", "other"]);
    assert_eq!(relation(&rebased, &orphan).await, Unrelated);
    let nowhere = "1".repeat(40);
    assert_eq!(relation(&nowhere, &orphan).await, Gone);
}

/// A new cache has no commits that are on no branch. The server is asked for them.
#[tokio::test]
async fn a_new_cache_does_not_make_histories_unrelated() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let second = repository.commit("second");
    repository.git(&["commit", "--quiet", "--amend", "--allow-empty", "--message", "another second"]);
    let amended = repository.git(&["rev-parse", "HEAD"]);
    let mirrors = repository.mirrors();
    let relation = async || {
        let (earlier, commit) = (commit_of(&second), commit_of(&amended));
        mirrors.relation(&repository.url(), &anonymous(), &earlier, &commit).await.unwrap()
    };
    assert_eq!(relation().await, Related);
    // That the server has a commit does not make it a commit of its branches.
    let spec = RevisionSpec::new(second.as_str());
    let resolved = mirrors.resolve(&repository.url(), &anonymous(), &spec).await;
    assert!(resolved.err().unwrap().to_string().contains("is on no branch or tag"));
    std::fs::remove_dir_all(repository.cache()).unwrap();
    repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    repository.git(&["gc", "--quiet", "--prune=now"]);
    let fresh = repository.mirrors();
    let (earlier, commit) = (commit_of(&second), commit_of(&amended));
    let relation = fresh.relation(&repository.url(), &anonymous(), &earlier, &commit).await.unwrap();
    assert_eq!(relation, Gone);
}

/// A server that does not answer is no proof that a commit is gone.
#[tokio::test]
async fn a_server_that_does_not_answer_proves_nothing() {
    let repository = Repository::new();
    repository.write("a", "1");
    let first = commit_of(&repository.commit("first"));
    let mirrors = repository.mirrors();
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    let away = repository.path().with_extension("away");
    std::fs::rename(repository.path(), &away).unwrap();
    std::fs::create_dir(repository.path()).unwrap();
    let nowhere = commit_of(&"1".repeat(40));
    assert!(mirrors.relation(&repository.url(), &anonymous(), &nowhere, &first).await.is_err());
}
