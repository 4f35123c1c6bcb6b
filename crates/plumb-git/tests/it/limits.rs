//! Repositories that need more than they may.

use std::path::Path;

use plumb_git::{GitLimits, GitOptions, LocalAccess, Mirrors, RepoUrl, RevisionSpec};

use crate::hostile::whole;
use crate::repository::{Repository, anonymous};

fn limited(repository: &Repository, limits: GitLimits) -> Mirrors {
    Mirrors::new(repository.cache(), GitOptions { limits, ..GitOptions::default() }).unwrap()
}

/// Digits that compress to a little more than half.
fn noise(bytes: usize) -> String {
    let words = (0..=bytes as u64 / 16).map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    words.collect()
}

/// Two files of a hundred million zeros, one stored as a difference to the other: a few hundred bytes.
#[tokio::test]
async fn a_small_pack_of_huge_files_is_refused_and_not_tried_again() {
    let repository = Repository::new();
    let zeros = "0".repeat(100 << 20);
    repository.write("big", &zeros);
    repository.commit("first");
    repository.write("big", &format!("{zeros}1"));
    repository.commit("second");
    repository.git(&["repack", "-adfq"]);
    let mirrors = limited(&repository, GitLimits { memory: 150 << 20, ..GitLimits::default() });
    for _ in 0..2 {
        let error = mirrors.fetch(&repository.url(), &anonymous()).await.err().unwrap();
        assert!(whole(&error).contains("needs more than 150 MiB of memory"), "{}", whole(&error));
        assert!(!error.retry().is_transient());
    }
    assert_eq!(mirrors.requests().fetch, 1, "the same objects would fail again");
    // Another commit is another chance.
    repository.git(&["checkout", "--quiet", "--orphan", "small"]);
    repository.git(&["rm", "--quiet", "-f", "big"]);
    repository.commit("small");
    repository.git(&["branch", "-D", "main"]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
}

#[tokio::test]
async fn a_mirror_over_its_limit_is_not_kept() {
    let repository = Repository::new();
    repository.write("a", "1");
    let first = repository.commit("first");
    let mirrors = limited(&repository, GitLimits { mirrors: 2 << 20, ..GitLimits::default() });
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    repository.write("big", &noise(8 << 20));
    repository.commit("big");
    let error = mirrors.fetch(&repository.url(), &anonymous()).await.err().unwrap();
    assert_eq!(error.category(), "space", "{}", whole(&error));
    assert!(whole(&error).contains("--mirror-space-gib"), "{}", whole(&error));
    assert!(size(&repository.cache()) < 1 << 20);
    repository.git(&["reset", "--quiet", "--hard", &first]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
}

#[tokio::test]
async fn of_many_mirrors_the_largest_goes_and_not_the_small_ones() {
    let (cache, large) = (Repository::new(), Repository::new());
    let small: Vec<Repository> = (0..4).map(|_| Repository::new()).collect();
    for repository in &small {
        repository.write("a", &noise(1 << 20));
        repository.commit("first");
    }
    large.write("a", &noise(2 << 20));
    large.commit("first");
    let mirrors = limited(&cache, GitLimits { mirrors: 2_900_000, ..GitLimits::default() });
    mirrors.fetch(&large.url(), &anonymous()).await.unwrap();
    for repository in &small {
        mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    }
    let has = |repository: &Repository| mirrors.last_good(&repository.url(), &anonymous()).is_some();
    assert!(small.iter().all(has));
    assert!(!has(&large), "it was removed to make room");
    let error = mirrors.fetch(&large.url(), &anonymous()).await.err().unwrap();
    assert!(whole(&error).contains("it is the largest"), "{}", whole(&error));
    assert!(small.iter().all(has));
}

#[tokio::test]
async fn a_mirror_in_use_is_not_removed() {
    let (cache, last) = (Repository::new(), Repository::new());
    let first = [Repository::new(), Repository::new()];
    let mirrors = limited(&cache, GitLimits { mirrors: 2_500_000, ..GitLimits::default() });
    let mut in_use = Vec::new();
    for repository in &first {
        repository.write("a", &noise(2 << 20));
        repository.commit("first");
        in_use.push(mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror);
    }
    last.write("a", &noise(1 << 20));
    last.commit("first");
    let error = mirrors.fetch(&last.url(), &anonymous()).await.err().unwrap();
    assert_eq!(error.category(), "space", "{}", whole(&error));
    for mirror in in_use {
        let commit = mirror.resolve(&RevisionSpec::new("main")).unwrap();
        mirror.tree(&commit).unwrap();
    }
}

fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| match entry.metadata().unwrap() {
        metadata if metadata.is_dir() => size(&entry.path()),
        metadata => metadata.len(),
    });
    sizes.sum()
}

#[tokio::test]
async fn links_and_submodules_do_not_lead_out_of_the_allowed_directories() {
    let private = Repository::new();
    private.write("a", "private");
    let commit = private.commit("private");
    let allowed = Repository::new();
    let address = private.path().display().to_string();
    allowed.write(".gitmodules", &format!("[submodule \"x\"]\n\tpath = lib\n\turl = {address}\n"));
    allowed.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},lib")]);
    allowed.git(&["add", ".gitmodules"]);
    allowed.git(&["commit", "--quiet", "-m", "submodule"]);
    let link = allowed.path().join("link");
    std::os::unix::fs::symlink(private.path(), &link).unwrap();
    let local = LocalAccess::Below(vec![allowed.path()]);
    let mirrors = Mirrors::new(allowed.cache(), GitOptions { local, ..GitOptions::default() }).unwrap();
    for path in [link, private.path(), allowed.path().join("../../none"), allowed.path().join("none")] {
        let url = RepoUrl::parse(&path.display().to_string()).unwrap();
        let error = mirrors.fetch(&url, &anonymous()).await.err().unwrap().to_string();
        assert!(error.contains("--local-repositories") && error.contains("does not exist, or"), "{error}");
    }
    let main = RevisionSpec::new("main");
    let (mirror, commit) = mirrors.resolve(&allowed.url(), &anonymous(), &main).await.unwrap();
    let tree = mirrors.tree_with_submodules(&mirror, &commit, &|_| Ok(anonymous())).await;
    let error = whole(&tree.err().unwrap());
    assert!(error.contains("--local-repositories"), "{error}");
}
