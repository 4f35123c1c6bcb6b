//! A user's working copy: commits on a new branch, and nothing else changes.

use std::collections::BTreeMap;

use plumb_core::source::{RepoPath, SourceFiles as _};
use plumb_git::{NewCommit, WorkingCopy, WorkingCopyError};
use plumb_testkit::git::GitRepo;

fn repository() -> (GitRepo, WorkingCopy) {
    let repo = GitRepo::new().unwrap();
    repo.name_author().unwrap();
    repo.commit(&[("a.yaml", "a: 1\n"), ("sub/b, c.yaml", "b: 1\n"), (".gitignore", "ignored.yaml\n")])
        .unwrap();
    let copy = WorkingCopy::open(&repo.path().join("sub")).unwrap();
    (repo, copy)
}

fn commit(message: &str, files: &[(&str, &str)]) -> NewCommit {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    NewCommit { message: message.to_owned(), files: files.collect::<BTreeMap<_, _>>() }
}

#[test]
fn a_branch_is_made_beside_the_work_tree() {
    let (repo, copy) = repository();
    let commits =
        [commit("one\n\nwhy\n", &[("a.yaml", "a: 2\n")]), commit("two", &[("sub/b, c.yaml", "b: 2\n")])];
    copy.check_ready().unwrap();
    copy.commit_to_branch("fix/it", &commits).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]).unwrap(), "");
    assert_eq!(repo.git(&["branch", "--show-current"]).unwrap(), "main");
    assert_eq!(repo.git(&["log", "--format=%s", "main..fix/it"]).unwrap(), "two\none");
    assert_eq!(repo.git(&["show", "fix/it:a.yaml"]).unwrap(), "a: 2");
    assert_eq!(repo.git(&["show", "fix/it~1:sub/b, c.yaml"]).unwrap(), "b: 1");
    assert_eq!(repo.git(&["show", "fix/it:sub/b, c.yaml"]).unwrap(), "b: 2");
    let again = copy.commit_to_branch("fix/it", &commits);
    assert!(matches!(again, Err(WorkingCopyError::BranchExists { .. })), "{again:?}");
}

/// Windows line ends in the work tree are not committed where the repository says so.
#[test]
fn contents_pass_the_filters_of_their_paths() {
    let (repo, copy) = repository();
    repo.commit(&[(".gitattributes", "*.yaml text eol=crlf\n")]).unwrap();
    copy.commit_to_branch("ends", &[commit("ends", &[("a.yaml", "a: 2\r\n")])]).unwrap();
    assert_eq!(repo.git(&["cat-file", "-s", "ends:a.yaml"]).unwrap(), "5");
}

#[test]
fn what_is_not_ready_is_named() {
    let (repo, copy) = repository();
    repo.write("ignored.yaml", b"x: 1\n").unwrap();
    repo.write("new.yaml", b"x: 1\n").unwrap();
    // New files are not mixed with anything.
    copy.check_ready().unwrap();
    for file in ["ignored.yaml", "new.yaml"] {
        let made = copy.commit_to_branch("b", &[commit("x", &[(file, "x: 2\n")])]);
        assert!(matches!(made, Err(WorkingCopyError::NotCommitted { .. })), "{made:?}");
    }
    assert_eq!(repo.git(&["branch", "--list", "b"]).unwrap(), "");
    repo.write("a.yaml", b"a: 3\n").unwrap();
    let dirty = copy.check_ready();
    assert!(matches!(&dirty, Err(WorkingCopyError::Dirty { files, .. }) if files == "a.yaml"), "{dirty:?}");
    repo.git(&["checkout", "--quiet", "."]).unwrap();
    repo.git(&["checkout", "--quiet", "--detach"]).unwrap();
    let detached = copy.check_ready();
    assert!(matches!(detached, Err(WorkingCopyError::Detached { .. })), "{detached:?}");
    assert!(matches!(copy.check_new_branch("a..b"), Err(WorkingCopyError::Git { .. })));
    let elsewhere = WorkingCopy::open(&std::env::temp_dir());
    assert!(matches!(elsewhere, Err(WorkingCopyError::NotARepository { .. })), "{elsewhere:?}");
}

/// A branch that exists only at the remote is found, as in the checkout of a CI system. A name that begins like an option
/// is a name.
#[test]
fn the_files_of_a_revision_are_read_without_a_checkout() {
    let (repo, copy) = repository();
    repo.tag("old").unwrap();
    let new = repo.commit(&[("a.yaml", "a: 2\n")]).unwrap();
    repo.git(&["update-ref", "refs/remotes/origin/theirs", "old"]).unwrap();
    repo.git(&["remote", "add", "origin", "https://example.com/shop.git"]).unwrap();
    let path = RepoPath::parse("a.yaml").unwrap();
    let read = |revision: &str| copy.tree_at(revision).map(|tree| tree.read(&path).unwrap());
    for (revision, expected) in
        [("main", "a: 2\n"), ("old", "a: 1\n"), ("theirs", "a: 1\n"), (&new[..7], "a: 2\n")]
    {
        assert_eq!(read(revision).unwrap(), expected.as_bytes(), "{revision}");
    }
    for revision in ["nothing", "--all", "", "main:a.yaml"] {
        let found = read(revision);
        assert!(matches!(found, Err(WorkingCopyError::NoRevision { .. })), "{revision}: {found:?}");
    }
    assert_eq!(copy.remotes(), ["https://example.com/shop.git"]);
}
