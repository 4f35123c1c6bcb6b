//! Repositories and servers that attack.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use plumb_core::source::{RepoPath, SourceError, SourceFiles as _};
use plumb_git::{GitLimits, GitOptions, LocalAccess, Mirrors, RepoAccess, RepoUrl, RevisionSpec, Secret};

use crate::repository::{Repository, anonymous};

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

pub(crate) fn quick(repository: &Repository) -> Mirrors {
    let short = Duration::from_secs(2);
    let limits = GitLimits { timeout: short, fetch_timeout: short, ..GitLimits::default() };
    Mirrors::new(repository.cache(), GitOptions { limits, ..GitOptions::default() }).unwrap()
}

/// A server that takes connections and does with them as told.
pub(crate) fn server(behave: impl Fn(std::net::TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(behave));
    port
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let repository = Repository::new();
    let port = server(|stream| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_mins(1));
            drop(stream);
        });
    });
    for scheme in ["git", "http"] {
        let url = RepoUrl::parse(&format!("{scheme}://127.0.0.1:{port}/repo")).unwrap();
        let started = Instant::now();
        let error = quick(&repository).fetch(&url, &anonymous()).await.err().unwrap();
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(whole(&error).contains("did not finish within 2 s"), "{}", whole(&error));
        assert!(error.retry().is_transient());
    }
    let left = Command::new("pgrep").args(["-f", &format!("127.0.0.1:{port}/repo")]).output().unwrap();
    assert!(left.stdout.is_empty(), "git still runs: {}", String::from_utf8_lossy(&left.stdout));
}

#[tokio::test]
async fn a_server_that_talks_nonsense_has_no_revisions() {
    let repository = Repository::new();
    let port = server(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nboo!");
    });
    let url = RepoUrl::parse(&format!("http://127.0.0.1:{port}/repo")).unwrap();
    let error =
        quick(&repository).resolve(&url, &anonymous(), &RevisionSpec::new("main")).await.err().unwrap();
    assert!(whole(&error).contains("127.0.0.1"), "{}", whole(&error));
}

#[tokio::test]
async fn a_repository_that_lost_all_its_refs_does_not_empty_the_mirror() {
    let repository = Repository::new();
    repository.write("a", "1");
    let commit = repository.commit("first");
    let mirrors = repository.mirrors();
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    repository.git(&["update-ref", "-d", "refs/heads/main"]);
    let error = mirrors.fetch(&repository.url(), &anonymous()).await.err().unwrap();
    assert!(error.to_string().contains("lost all branches and tags"), "{error}");
    let mirror = mirrors.last_good(&repository.url(), &anonymous()).unwrap();
    assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap().as_str(), commit);
}

#[tokio::test]
async fn credentials_are_neither_shown_nor_sent_elsewhere() {
    let repository = Repository::new();
    let (sender, seen) = std::sync::mpsc::channel();
    let thief = server(move |mut stream| {
        let mut bytes = [0; 4096];
        let n = stream.read(&mut bytes).unwrap_or(0);
        let _ = sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned());
        let _ = stream.write_all(
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n",
        );
    });
    let front = server(move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: http://localhost:{thief}/repo/info/refs?service=git-upload-pack\r\nContent-Length: 0\r\n\r\n"
        );
        let _ = stream.write_all(answer.as_bytes());
    });
    let url = RepoUrl::parse(&format!("http://127.0.0.1:{front}/repo")).unwrap();
    let password = RepoAccess {
        username: Some("bob".to_owned()),
        password: Some(Secret::new("hunter2-password")),
        ..RepoAccess::default()
    };
    let forced = RepoAccess { force_basic_auth: true, ..password.clone() };
    let token = RepoAccess { bearer_token: Some(Secret::new("hunter2-token")), ..RepoAccess::default() };
    for access in [password, forced, token] {
        let error = quick(&repository).fetch(&url, &access).await.err().unwrap();
        assert!(!whole(&error).contains("hunter2"), "{}", whole(&error));
        assert!(!format!("{access:?} {error:?}").contains("hunter2"));
    }
    for request in seen.try_iter() {
        assert!(!request.to_ascii_lowercase().contains("authorization"), "sent to another host: {request}");
    }
}

#[tokio::test]
async fn a_password_reaches_its_own_server_only_when_asked() {
    let repository = Repository::new();
    let (sender, seen) = std::sync::mpsc::channel();
    let port = server(move |mut stream| {
        let mut bytes = [0; 4096];
        let n = stream.read(&mut bytes).unwrap_or(0);
        let _ = sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned());
        let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let url = RepoUrl::parse(&format!("http://127.0.0.1:{port}/repo")).unwrap();
    let access = RepoAccess {
        username: Some("bob".to_owned()),
        password: Some(Secret::new("pw")),
        ..RepoAccess::default()
    };
    let _ = quick(&repository).fetch(&url, &access).await;
    let requests: Vec<String> = seen.try_iter().collect();
    assert!(requests.iter().any(|request| request.contains("Authorization: Basic Ym9iOnB3")), "{requests:?}");
}

#[tokio::test]
async fn branches_named_like_options_are_branches() {
    let repository = Repository::new();
    repository.write("a", "1");
    let commit = repository.commit("first");
    for name in ["refs/heads/--upload-pack=touch-x", "refs/heads/-x", "refs/tags/--help"] {
        repository.git(&["update-ref", name, &commit]);
    }
    let mirrors = repository.mirrors();
    let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
    assert!(mirror.resolve(&RevisionSpec::new("--upload-pack=touch-x")).is_err());
    assert_eq!(mirror.resolve(&RevisionSpec::new("main")).unwrap().as_str(), commit);
}

#[tokio::test]
async fn configuration_and_hooks_of_the_repository_have_no_say() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let marker = repository.path().join("ran");
    let command = format!("touch {}", marker.display());
    for key in
        ["uploadpack.packObjectsHook", "core.fsmonitor", "core.sshCommand", "credential.helper", "core.pager"]
    {
        repository.git(&["config", key, &command]);
    }
    for hook in ["post-checkout", "reference-transaction", "post-update", "pre-auto-gc"] {
        let path = repository.path().join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{command}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    repository.mirrors().fetch(&repository.url(), &anonymous()).await.unwrap();
    assert!(!marker.exists(), "a command of the repository was run");
}

#[tokio::test]
async fn trees_made_by_hand_cannot_climb() {
    let repository = Repository::new();
    repository.write("a", "content");
    repository.commit("first");
    let blob = repository.git(&["rev-parse", "HEAD:a"]);
    // git itself would not write these names, so the tree is written as bytes.
    for name in ["..", ".", ".git", ".GIT", "x/y"] {
        let mut tree = format!("100644 {name}\0").into_bytes();
        tree.extend((0..20).map(|n| u8::from_str_radix(&blob[n * 2..n * 2 + 2], 16).unwrap()));
        let file = repository.path().join("../tree");
        std::fs::write(&file, tree).unwrap();
        let file = file.display().to_string();
        let tree = repository.git(&["hash-object", "-t", "tree", "-w", "--literally", &file]);
        let commit = repository.git(&["commit-tree", &tree, "-m", "evil"]);
        repository.git(&["update-ref", "refs/heads/evil", &commit]);
        let mirrors = repository.mirrors();
        let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
        let commit = mirror.resolve(&RevisionSpec::new("evil")).unwrap();
        let listed = mirror.tree(&commit).unwrap().list(&RepoPath::root());
        assert!(matches!(listed, Err(SourceError::BadName { .. })), "{name}: {listed:?}");
    }
}

#[tokio::test]
async fn a_blob_over_the_limit_is_not_unpacked() {
    let repository = Repository::new();
    repository.write("big", &"0".repeat(1 << 20));
    repository.commit("first");
    let limits = GitLimits { max_blob: 1000, ..GitLimits::default() };
    let mirrors = Mirrors::new(repository.cache(), GitOptions { limits, ..GitOptions::default() }).unwrap();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::default()).await.unwrap();
    let error = mirror.tree(&commit).unwrap().read(&path("big")).unwrap_err();
    assert_eq!(error.to_string(), "`big` has 1048576 bytes, more than the limit of 1000");
}

#[tokio::test]
async fn a_pack_over_the_limit_is_not_kept() {
    let repository = Repository::new();
    let words: Vec<String> =
        (0..400_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let noise = words.concat();
    repository.write("big", &noise);
    repository.commit("first");
    let limits = GitLimits { max_file: 1 << 20, ..GitLimits::default() };
    let mirrors = Mirrors::new(repository.cache(), GitOptions { limits, ..GitOptions::default() }).unwrap();
    let error = mirrors.fetch(&repository.url(), &anonymous()).await.err().unwrap();
    assert_eq!(error.category(), "objects", "{}", whole(&error));
}

#[tokio::test]
async fn local_repositories_only_where_allowed() {
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    for (local, allowed) in [
        (LocalAccess::Denied, false),
        (LocalAccess::Below(vec!["/nowhere".into()]), false),
        (LocalAccess::Below(vec![repository.path().parent().unwrap().to_owned()]), true),
        (LocalAccess::Anywhere, true),
    ] {
        let mirrors =
            Mirrors::new(repository.cache(), GitOptions { local, ..GitOptions::default() }).unwrap();
        assert_eq!(mirrors.fetch(&repository.url(), &anonymous()).await.is_ok(), allowed);
    }
}

#[tokio::test]
async fn submodules_are_directories_and_cannot_trick() {
    let library = Repository::new();
    library.write("lib/base.yaml", "from the library");
    library.commit("library");
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("first");
    let address = library.path().display().to_string();
    repository.git(&["submodule", "--quiet", "add", &address, "vendor/lib"]);
    repository.commit("submodule");
    let mirrors = repository.mirrors();
    let (mirror, commit) =
        mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::default()).await.unwrap();
    let plain = mirror.tree(&commit).unwrap();
    assert!(matches!(plain.list(&path("vendor/lib")), Err(SourceError::Submodule { .. })));
    let tree = mirrors.tree_with_submodules(&mirror, &commit, &|_| Ok(RepoAccess::default())).await.unwrap();
    assert_eq!(tree.read(&path("vendor/lib/lib/base.yaml")).unwrap(), b"from the library");
    assert_eq!(tree.read(&path("a")).unwrap(), b"1");
    assert_eq!(tree.list(&path("vendor/lib")).unwrap().len(), 1);

    let refuse = |url: &RepoUrl| Err(format!("{url} is not permitted"));
    let refused = mirrors.tree_with_submodules(&mirror, &commit, &refuse).await.err().unwrap();
    assert_eq!(whole(&refused), format!("cannot use submodule `vendor/lib`: {address} is not permitted"));

    for (address, word) in [
        ("ext::touch", "remote helpers"),
        ("--upload-pack=touch", "dash"),
        ("/no/such/place", "no such directory"),
    ] {
        let modules =
            format!("[submodule \"x\"]\n\tpath = vendor/lib\n\turl = {address}\n\tupdate = !touch ran\n");
        repository.write(".gitmodules", &modules);
        repository.commit("evil");
        mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
        let (mirror, commit) =
            mirrors.resolve(&repository.url(), &anonymous(), &RevisionSpec::default()).await.unwrap();
        let error = mirrors
            .tree_with_submodules(&mirror, &commit, &|_| Ok(RepoAccess::default()))
            .await
            .err()
            .unwrap();
        let text = whole(&error);
        assert!(text.contains("vendor/lib") && text.contains(word), "{text}");
    }
    assert!(!repository.path().join("ran").exists());
}
