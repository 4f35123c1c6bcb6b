//! More repositories and servers that attack, and servers that fail half-way.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use plumb_core::source::SourceFiles as _;
use plumb_git::{RepoAccess, RepoUrl, RevisionSpec};

use crate::hostile::{path, quick, server, whole};
use crate::repository::{Repository, anonymous};

/// Writes a tree as bytes, and gives back its hash.
fn tree(repository: &Repository, entries: &[(&str, &str, &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, hash) in entries {
        bytes.extend(format!("{mode} {name}\0").into_bytes());
        bytes.extend((0..20).map(|n| u8::from_str_radix(&hash[n * 2..n * 2 + 2], 16).unwrap()));
    }
    let file = repository.path().join("../tree");
    std::fs::write(&file, bytes).unwrap();
    repository.git(&["hash-object", "-t", "tree", "-w", "--literally", &file.display().to_string()])
}

fn commit_tree(repository: &Repository, tree: &str, branch: &str) -> String {
    let commit = repository.git(&["commit-tree", tree, "-m", "made by hand"]);
    repository.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
    commit
}

/// Thirteen small objects that are ten billion files.
#[tokio::test]
async fn a_tree_that_contains_itself_is_searched_once() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.write("modules", "[submodule \"x\"]\n\tpath = vendor\n\turl = ../other\n");
    repository.commit("first");
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    let modules = repository.git(&["rev-parse", "HEAD:modules"]);
    let names: Vec<String> = (0..10).map(|n| format!("d{n}")).collect();
    let mut level = tree(&repository, &[("100644", "a", &blob)]);
    for _ in 0..10 {
        let entries: Vec<(&str, &str, &str)> =
            names.iter().map(|name| ("40000", name.as_str(), level.as_str())).collect();
        level = tree(&repository, &entries);
    }
    let root = tree(&repository, &[("100644", ".gitmodules", &modules), ("40000", "bomb", &level)]);
    commit_tree(&repository, &root, "evil");
    let mirrors = repository.mirrors();
    let started = Instant::now();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::new("evil")).await.unwrap();
    let whole_tree =
        mirrors.tree_with_submodules(&mirror, &commit, &|_| Ok(RepoAccess::default())).await.unwrap();
    assert_eq!(whole_tree.list(&path("bomb/d0")).unwrap().len(), 10);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Every commit has the one before it as a submodule, many times.
#[tokio::test]
async fn submodules_that_are_their_own_ancestors_end() {
    let repository = Repository::new();
    let address = repository.path().display().to_string();
    let names: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    let modules =
        names.iter().map(|name| format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = {address}\n"));
    repository.write("modules", &modules.collect::<String>());
    let mut commit = repository.commit("first");
    let modules = repository.git(&["rev-parse", "HEAD:modules"]);
    for _ in 0..12 {
        let mut entries = vec![("100644", ".gitmodules", modules.as_str())];
        entries.extend(names.iter().map(|name| ("160000", name.as_str(), commit.as_str())));
        let tree = tree(&repository, &entries);
        commit = commit_tree(&repository, &tree, "evil");
    }
    let mirrors = repository.mirrors();
    let started = Instant::now();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::new("evil")).await.unwrap();
    let error =
        mirrors.tree_with_submodules(&mirror, &commit, &|_| Ok(RepoAccess::default())).await.err().unwrap();
    assert!(whole(&error).contains("more than 100 submodules"), "{}", whole(&error));
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

/// A user who can push a branch must not be able to change what other apps pinned by its hash.
#[tokio::test]
async fn a_branch_called_like_a_commit_is_not_that_commit() {
    let repository = Repository::new();
    repository.write("a", "1");
    let pinned = repository.commit("first");
    repository.write("a", "2");
    let evil = repository.commit("second");
    for name in [format!("refs/heads/{pinned}"), format!("refs/tags/{pinned}")] {
        repository.git(&["update-ref", &name, &evil]);
    }
    let mirrors = repository.mirrors();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::new(&pinned)).await.unwrap();
    assert_eq!(commit.as_str(), pinned);
    assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"1");
}

#[tokio::test]
async fn tags_of_tags_and_of_files() {
    let repository = Repository::new();
    repository.write("a", "1");
    let commit = repository.commit("first");
    repository.git(&["tag", "-a", "-m", "x", "t0", "main"]);
    for n in 1..40 {
        repository.git(&["tag", "-a", "-m", "x", &format!("t{n}"), &format!("t{}", n - 1)]);
    }
    repository.git(&["tag", "file", "HEAD:a"]);
    repository.git(&["tag", "directory", "HEAD^{tree}"]);
    let mirrors = repository.mirrors();
    let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
    assert_eq!(mirror.resolve(&RevisionSpec::new("t39")).unwrap().as_str(), commit);
    for tag in ["file", "directory"] {
        let error = mirror.resolve(&RevisionSpec::new(tag)).err().map(|error| whole(&error));
        let read = mirror.resolve(&RevisionSpec::new(tag)).ok().and_then(|commit| mirror.tree(&commit).err());
        let said = error.or(read.map(|error| whole(&error))).expect("neither is a commit");
        assert!(!said.is_empty());
    }
}

#[test]
fn addresses_that_smuggle() {
    for (address, word) in [
        ("ssh://-oProxyCommand=touch%20x/repo", "dash"),
        ("ssh://-oProxyCommand=x@host/repo", "dash"),
        ("-oProxyCommand=x@host:repo", "dash"),
        ("git@-oProxyCommand=x:repo", "dash"),
        ("git@host:-x", "dash"),
        ("https://host/--upload-pack=x", ""),
        ("https://a%0ahost=evil.example.com@host/repo", "control characters"),
        ("https://a:b%0d%0aquit=1@host/repo", "control characters"),
        ("https://host\n.evil/repo", "control characters"),
        ("https://host%00/repo", "host"),
        ("ext::sh -c touch% x", ""),
        ("fd::17", "remote helpers"),
        ("transport::https://host/repo", "remote helpers"),
        ("https://user:geheim@ho st/repo", "white space"),
    ] {
        let parsed = RepoUrl::parse(address);
        match parsed {
            Err(error) => {
                assert!(error.to_string().contains(word), "{address}: {error}");
                assert!(!error.to_string().contains("geheim"), "{error}");
            }
            Ok(url) => panic!("{address} is taken as {}", url.as_str()),
        }
    }
}

/// The server advertises objects and then sends damaged ones.
#[tokio::test]
async fn damaged_objects_on_the_server_leave_the_last_good_state() {
    let repository = Repository::new();
    repository.write("a", "1");
    let good = repository.commit("first");
    let mirrors = repository.mirrors();
    let url = repository.url();
    mirrors.fetch(&url, &anonymous()).await.unwrap();

    repository.write("a", "2, which is never read");
    repository.commit("second");
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    let object = repository.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    let bytes = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    let error = mirrors.fetch(&url, &anonymous()).await.err().unwrap();
    assert!(whole(&error).contains(&repository.path().display().to_string()), "{}", whole(&error));
    let mirror = mirrors.last_good(&url, &anonymous()).unwrap();
    assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap().as_str(), good);
    assert_eq!(
        mirror.tree(&mirror.resolve(&RevisionSpec::new("main")).unwrap()).unwrap().read(&path("a")).unwrap(),
        b"1"
    );

    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, bytes).unwrap();
    let mirror = mirrors.fetch(&url, &anonymous()).await.unwrap().mirror;
    let commit = mirror.resolve(&RevisionSpec::new("main")).unwrap();
    assert_eq!(mirror.tree(&commit).unwrap().read(&path("a")).unwrap(), b"2, which is never read");
}

/// A server that always has one more byte.
#[tokio::test]
async fn a_server_that_drips_is_given_up() {
    let repository = Repository::new();
    let port = server(|mut stream| {
        std::thread::spawn(move || {
            let _ = stream.read(&mut [0; 4096]);
            let head =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n";
            let _ = stream.write_all(head);
            while stream.write_all(b"0").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    });
    let url = RepoUrl::parse(&format!("http://127.0.0.1:{port}/repo")).unwrap();
    let started = Instant::now();
    let error = quick(&repository).fetch(&url, &anonymous()).await.err().unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(whole(&error).contains(&format!("127.0.0.1:{port}")), "{}", whole(&error));
    assert!(quick(&repository).last_good(&url, &anonymous()).is_none());
}
