//! The cache directory is a cache: every file of it, and all of it, may be damaged or removed at any moment.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plumb_core::source::SourceFiles as _;
use plumb_git::{Mirrors, RevisionSpec};

use crate::hostile::{path, whole};
use crate::repository::{Repository, anonymous};

/// What is done to a file, in words and as a function.
type Damage = (&'static str, fn(&Path));

/// Ways to damage a file. Each also works on a file that was damaged before.
pub(crate) const DAMAGES: [Damage; 8] = [
    ("removed", remove),
    ("emptied", |path| std::fs::write(path, "").unwrap()),
    ("cut", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("overwritten", |path| {
        let bytes = std::fs::read(path).unwrap();
        // The same length and no byte as it was.
        std::fs::write(path, bytes.iter().map(|byte| byte ^ 0x5a).collect::<Vec<_>>()).unwrap();
    }),
    ("one byte changed", |path| {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        std::fs::write(path, bytes).unwrap();
    }),
    ("replaced by a directory", |path| {
        remove(path);
        std::fs::create_dir_all(path.join("inner")).unwrap();
    }),
    ("replaced by a link", |path| {
        remove(path);
        std::os::unix::fs::symlink("/nonexistent/file", path).unwrap();
    }),
    ("locked", |path| {
        let lock = path.with_file_name(format!("{}.lock", path.file_name().unwrap().display()));
        std::fs::write(lock, "").unwrap();
    }),
];

fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

/// All files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// git writes objects read-only.
fn make_writable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Replaces the last commit, so that the repository stays small, and checks that the mirror has it.
async fn next_commit(repository: &Repository, mirrors: &Mirrors, content: &str, what: &str) {
    repository.write("a", content);
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--amend", "--message", content]);
    let fetched = mirrors.fetch(&repository.url(), &anonymous()).await;
    let mirror = fetched.unwrap_or_else(|error| panic!("{what}: {}", whole(&error))).mirror;
    let commit = mirror.resolve(&RevisionSpec::new("main")).unwrap();
    let tree = mirror.tree(&commit).unwrap();
    assert_eq!(tree.read(&path("a")).unwrap(), content.as_bytes(), "{what}");
    assert_eq!(tree.read(&path("kept/0")).unwrap(), b"0", "{what}");
    assert!(mirror.resolve(&RevisionSpec::new("v1")).is_ok(), "{what}");
}

/// Damages each file of a mirror in each way, and asks for the next commit after each.
async fn walk(repository: &Repository) {
    let mirrors = repository.mirrors();
    let mut n_commits = 0;
    for (how, damage) in DAMAGES {
        n_commits += 1;
        next_commit(repository, &mirrors, &n_commits.to_string(), "before").await;
        let n_files = files(&repository.cache()).len();
        for index in 0..n_files {
            let Some(file) = files(&repository.cache()).into_iter().nth(index) else { break };
            let what = format!("{} {how}", file.strip_prefix(repository.cache()).unwrap().display());
            make_writable(&file);
            damage(&file);
            n_commits += 1;
            next_commit(repository, &mirrors, &n_commits.to_string(), &what).await;
        }
    }
}

fn repository_with(n_files: usize) -> Repository {
    let repository = Repository::new();
    repository.write("a", "0");
    for index in 0..n_files {
        repository.write(&format!("kept/{index}"), &index.to_string());
    }
    repository.commit("first");
    repository.git(&["tag", "--annotate", "v1", "--message", "one"]);
    repository.commit("second");
    repository
}

#[tokio::test]
async fn every_file_of_a_mirror_may_be_damaged() {
    walk(&repository_with(1)).await;
}

/// git keeps more than a hundred objects in a pack.
#[tokio::test]
async fn every_file_of_a_mirror_with_packs_may_be_damaged() {
    let repository = repository_with(120);
    repository.mirrors().fetch(&repository.url(), &anonymous()).await.unwrap();
    let packs =
        files(&repository.cache()).into_iter().filter(|file| file.extension().is_some_and(|e| e == "pack"));
    assert_eq!(packs.count(), 1);
    walk(&repository).await;
}

/// Between two fetches too: what cannot be read is fetched again, without a new commit.
#[tokio::test]
async fn damage_is_repaired_when_it_is_read() {
    for n_files in [1, 120] {
        for (how, damage) in DAMAGES {
            let repository = repository_with(n_files);
            let (mirrors, url) = (repository.mirrors(), repository.url());
            let (mirror, commit) =
                mirrors.resolve(&url, &anonymous(), &RevisionSpec::new("main")).await.unwrap();
            assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"0");
            let pinned = RevisionSpec::new(commit.as_str());
            for file in files(&repository.cache()) {
                make_writable(&file);
                damage(&file);
            }
            // A reader may meet the damage. If it does, the next request repairs it.
            let read = mirror.tree(&commit).and_then(|tree| tree.read(&path("kept/0")));
            if let Ok(content) = read {
                assert_eq!(content, b"0", "{how}");
            }
            let (mirror, commit) = mirrors.resolve(&url, &anonymous(), &pinned).await.unwrap();
            let read = mirror.tree(&commit).and_then(|tree| tree.read(&path("kept/0")));
            assert_eq!(read.unwrap(), b"0", "{how}");
        }
    }
}

#[tokio::test]
async fn the_cache_directory_may_be_removed() {
    let repository = repository_with(1);
    let mirrors = repository.mirrors();
    let mut n_commits = 0;
    let mut check = async |what: &str| {
        n_commits += 1;
        next_commit(&repository, &mirrors, &n_commits.to_string(), what).await;
    };
    check("before").await;
    std::fs::remove_dir_all(repository.cache()).unwrap();
    check("removed").await;
    for entry in std::fs::read_dir(repository.cache()).unwrap().flatten() {
        std::fs::remove_dir_all(entry.path()).unwrap();
        std::fs::write(entry.path(), "not a directory").unwrap();
    }
    check("mirrors replaced by files").await;
    std::fs::remove_dir_all(repository.cache()).unwrap();
    std::fs::write(repository.cache(), "not a directory").unwrap();
    check("replaced by a file").await;
    std::fs::remove_dir_all(repository.cache()).unwrap();
    std::os::unix::fs::symlink("/nonexistent/directory", repository.cache()).unwrap();
    check("replaced by a link").await;
    // Private files of this process are still safe from other processes.
    let left = repository.cache().join("git-left");
    std::fs::create_dir(&left).unwrap();
    let _second = repository.mirrors();
    assert!(left.exists(), "the lock is held on the new directory");
}

/// A directory that cannot be made is a condition that says so, and ends with its cause.
#[tokio::test]
async fn a_cache_directory_that_cannot_be_used_is_named() {
    let repository = repository_with(1);
    let parent = repository.path().join("../disk");
    std::fs::create_dir(&parent).unwrap();
    let mirrors = Mirrors::new(parent.join("cache"), plumb_git::GitOptions::default()).unwrap();
    next_commit(&repository, &mirrors, "1", "before").await;
    std::fs::remove_dir_all(&parent).unwrap();
    std::fs::write(&parent, "").unwrap();
    let error = mirrors.fetch(&repository.url(), &anonymous()).await.err().unwrap();
    let message = whole(&error);
    assert!(message.contains("/disk/cache"), "{message}");
    assert!(message.contains("check its free space and owner"), "{message}");
    assert!(!message.contains("install git") && !message.contains("credentials"), "{message}");
    assert!(error.retry().is_transient());
    std::fs::remove_file(&parent).unwrap();
    next_commit(&repository, &mirrors, "2", "usable again").await;
}

/// What the message of a failed fetch has to say about the disk.
fn assert_names_the_disk(error: &plumb_git::FetchError, part: &str) {
    let message = whole(error);
    let is_named = ["check its free space", "No space left on device", "Read-only file system"];
    assert!(is_named.iter().any(|words| message.contains(words)), "{part}: {message}");
    assert!(!message.contains("install git") && !message.contains("credentials"), "{part}: {message}");
    assert!(error.retry().is_transient(), "{part}: {message}");
}

#[tokio::test]
async fn a_disk_that_is_full_or_read_only_is_named_and_used_again_afterwards() {
    let repository = repository_with(1);
    let Some(disk) = plumb_testkit::SmallDisk::at(&repository.cache(), 2048).unwrap() else { return };
    let (mirrors, url) = (repository.mirrors(), repository.url());
    next_commit(&repository, &mirrors, "1", "before").await;
    let known = RevisionSpec::new(repository.git(&["rev-parse", "HEAD"]).as_str());
    // What is there can be read, and a commit that is not there is an error that names the disk.
    let check = async |content: &str, part: &str| {
        let (mirror, commit) = mirrors.resolve(&url, &anonymous(), &known).await.unwrap();
        assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"1", "{part}");
        repository.write("a", content);
        repository.commit(content);
        if let Err(error) = mirrors.fetch(&url, &anonymous()).await {
            assert_names_the_disk(&error, part);
        } else {
            panic!("{part}: the commit cannot be stored");
        }
    };
    disk.fill().unwrap();
    check("2", "full").await;
    disk.make_room().unwrap();
    next_commit(&repository, &mirrors, "3", "with room again").await;
    disk.make_read_only().unwrap();
    check("4", "read-only").await;
    disk.make_writable().unwrap();
    next_commit(&repository, &mirrors, "5", "writable again").await;
}

/// A fetch that fails for another reason does not throw the mirror away.
#[tokio::test]
async fn a_fetch_that_fails_keeps_the_mirror() {
    let repository = repository_with(1);
    let mirrors = repository.mirrors();
    next_commit(&repository, &mirrors, "1", "before").await;
    let mirrored = repository.mirrored();
    repository.write("a", "2");
    repository.commit("third");
    // The server lacks an object that it advertises.
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    let object = repository.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    let hidden = object.with_extension("hidden");
    std::fs::rename(&object, &hidden).unwrap();
    assert!(mirrors.fetch(&repository.url(), &anonymous()).await.is_err());
    std::fs::rename(&hidden, &object).unwrap();
    next_commit(&repository, &mirrors, "4", "after").await;
    assert!(mirrored.exists(), "the same repository is used");
}
