//! Keys and certificates, shown to servers that look at them: the real ssh and git against a server of the test kit.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_git::{Mirrors, RepoAccess, RepoUrl, RevisionSpec, Secret, SshAccess, TlsAccess};
use plumb_testkit::https::{Authority, HttpsServer, Identity, git_http_backend};
use plumb_testkit::ssh::SshServer;

use crate::hostile::whole;
use crate::repository::{Repository, anonymous};

/// What a fetch came to: the commit of `HEAD`, or everything that a user would read.
async fn fetch(mirrors: &Mirrors, url: &RepoUrl, access: &RepoAccess) -> Result<String, String> {
    let fetched = mirrors.fetch(url, access).await.map_err(|error| whole(&error))?;
    Ok(fetched.mirror.resolve(&RevisionSpec::default()).unwrap().to_string())
}

/// The error says all of this and none of what is secret.
fn says(error: &str, words: &[&str], secrets: &[&str]) {
    for word in words {
        assert!(error.contains(word), "does not say {word:?}: {error}");
    }
    for secret in secrets {
        // Any of its lines would be too much.
        for line in secret.lines().filter(|line| line.len() > 20 && !line.starts_with("-----")) {
            assert!(!error.contains(line), "shows a secret: {error}");
        }
    }
    assert!(!error.contains("/git-"), "names a private file: {error}");
}

mod ssh {
    use super::*;

    struct Keys {
        private: String,
        public: String,
    }

    fn has_ssh() -> bool {
        let found = Path::new("/usr/bin/ssh").exists() && Path::new("/usr/bin/ssh-keygen").exists();
        if !found {
            plumb_testkit::skipped("SSH", "ssh is not installed").unwrap();
        }
        found
    }

    fn keys(directory: &Path, name: &str) -> Keys {
        let file: PathBuf = directory.join(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
            .arg(&file)
            .status()
            .unwrap();
        assert!(made.success());
        Keys {
            private: std::fs::read_to_string(&file).unwrap(),
            public: std::fs::read_to_string(file.with_extension("pub")).unwrap(),
        }
    }

    struct Scene {
        repository: Repository,
        commit: String,
        right: Keys,
        wrong: Keys,
        server: SshServer,
        url: RepoUrl,
    }

    /// A repository behind an ssh server that lets one key in.
    fn scene() -> Scene {
        let repository = Repository::new();
        repository.write("a", "1");
        let commit = repository.commit("first");
        let directory = repository.path();
        let directory = directory.parent().unwrap();
        let (right, wrong) = (keys(directory, "right"), keys(directory, "wrong"));
        let server = SshServer::start(&right.public).unwrap();
        let url = format!("ssh://git@{}{}", server.address(), repository.path().display());
        Scene { commit, right, wrong, server, url: RepoUrl::parse(&url).unwrap(), repository }
    }

    fn access(key: Option<&str>, known_hosts: &str) -> RepoAccess {
        let ssh = SshAccess {
            private_key: key.map(Secret::new),
            known_hosts: known_hosts.to_owned(),
            ignore_host_key: false,
        };
        RepoAccess { ssh, ..RepoAccess::default() }
    }

    #[tokio::test]
    async fn the_right_key_gets_in() {
        if !has_ssh() {
            return;
        }
        let Scene { repository, commit, right, server, url, .. } = scene();
        let known = server.known_hosts();
        // Secrets are often written without their last line break, or with one too many.
        for key in
            [right.private.clone(), right.private.trim_end().to_owned(), format!("{}\n\n", right.private)]
        {
            let found = fetch(&repository.mirrors(), &url, &access(Some(&key), &known)).await;
            assert_eq!(found.as_deref(), Ok(commit.as_str()));
        }
        let expected = format!("git-upload-pack '{}'", repository.path().display());
        assert!(server.commands().iter().all(|command| *command == expected), "{:?}", server.commands());
        assert!(server.commands().len() >= 2, "refs and objects: {:?}", server.commands());
    }

    #[tokio::test]
    async fn keys_that_the_server_does_not_know_say_so() {
        if !has_ssh() {
            return;
        }
        let Scene { repository, right, wrong, server, url, .. } = scene();
        let known = server.known_hosts();
        let mirrors = repository.mirrors();
        let error = fetch(&mirrors, &url, &access(Some(&wrong.private), &known)).await.unwrap_err();
        says(&error, &["127.0.0.1", "does not accept the key", "`sshPrivateKey`"], &[&wrong.private]);
        let error = fetch(&mirrors, &url, &access(None, &known)).await.unwrap_err();
        says(&error, &["127.0.0.1", "the server wants a key", "`sshPrivateKey`"], &[]);
        let cut = &right.private[..right.private.len() / 2];
        let error = fetch(&mirrors, &url, &access(Some(cut), &known)).await.unwrap_err();
        says(&error, &["127.0.0.1", "is not a private key that ssh can use", "`sshPrivateKey`"], &[cut]);
        assert_eq!(server.commands(), Vec::<String>::new(), "no client was let in");
    }

    #[tokio::test]
    async fn a_host_that_is_not_known_is_not_spoken_to() {
        if !has_ssh() {
            return;
        }
        let Scene { repository, commit, right, server, url, .. } = scene();
        let mirrors = repository.mirrors();
        let key = Some(right.private.as_str());
        let port = server.address().port();
        let error = fetch(&mirrors, &url, &access(key, "")).await.unwrap_err();
        let scan = format!("ssh-keyscan -p {port} 127.0.0.1");
        says(&error, &["host key is not known", &scan, "argocd-ssh-known-hosts-cm"], &[&right.private]);

        let other = SshServer::start(&right.public).unwrap();
        let stranger = other.known_hosts().replace(&other.address().port().to_string(), &port.to_string());
        let error = fetch(&mirrors, &url, &access(key, &stranger)).await.unwrap_err();
        says(&error, &["host key differs", "argocd-ssh-known-hosts-cm"], &[&right.private]);
        assert_eq!(server.commands(), Vec::<String>::new(), "no client was let in");

        let mut careless = access(key, &stranger);
        careless.ssh.ignore_host_key = true;
        assert_eq!(fetch(&mirrors, &url, &careless).await.as_deref(), Ok(commit.as_str()));
    }
}

mod https {
    use super::*;

    struct Scene {
        repository: Repository,
        commit: String,
        servers: Authority,
        clients: Authority,
        url: RepoUrl,
    }

    /// A repository behind an https server that talks only to clients with a certificate.
    fn scene() -> Scene {
        let repository = Repository::new();
        repository.write("a", "1");
        let commit = repository.commit("first");
        let (servers, clients) = (Authority::new("servers").unwrap(), Authority::new("clients").unwrap());
        let root = repository.path().parent().unwrap().to_owned();
        let server = HttpsServer::start(&servers, Some(&clients), git_http_backend(root)).unwrap();
        let url = RepoUrl::parse(&format!("https://{}/work", server.address())).unwrap();
        Scene { repository, commit, servers, clients, url }
    }

    fn access(ca: Option<&Authority>, client: Option<&Identity>) -> RepoAccess {
        let tls = TlsAccess {
            insecure: false,
            ca: ca.map(|authority| authority.certificate().to_owned()),
            client_certificate: client.map(|client| client.certificate.clone()),
            client_key: client.map(|client| Secret::new(&client.key)),
        };
        RepoAccess { tls, ..RepoAccess::default() }
    }

    #[tokio::test]
    async fn the_right_certificates_get_in() {
        let Scene { repository, commit, servers, clients, url } = scene();
        let client = clients.issue("plumb").unwrap();
        let found = fetch(&repository.mirrors(), &url, &access(Some(&servers), Some(&client))).await;
        assert_eq!(found.as_deref(), Ok(commit.as_str()));
        let mut careless = access(None, Some(&client));
        careless.tls.insecure = true;
        let found = fetch(&repository.mirrors(), &url, &careless).await;
        assert_eq!(found.as_deref(), Ok(commit.as_str()));
    }

    #[tokio::test]
    async fn an_authority_that_is_not_known_is_not_trusted() {
        let Scene { repository, servers: _, clients, url, .. } = scene();
        let client = clients.issue("plumb").unwrap();
        let other = Authority::new("other").unwrap();
        for ca in [None, Some(&other)] {
            let error = fetch(&repository.mirrors(), &url, &access(ca, Some(&client))).await.unwrap_err();
            let words = ["127.0.0.1", "is not trusted", "argocd-tls-certs-cm under the key `127.0.0.1`"];
            says(&error, &words, &[&client.key]);
        }
    }

    #[tokio::test]
    async fn client_certificates_that_the_server_does_not_accept_say_so() {
        let Scene { repository, servers, url, clients, .. } = scene();
        let mirrors = repository.mirrors();
        let error = fetch(&mirrors, &url, &access(Some(&servers), None)).await.unwrap_err();
        says(&error, &["wants a client certificate", "`tlsClientCertData`", "`tlsClientCertKey`"], &[]);

        let stranger = Authority::new("others").unwrap().issue("plumb").unwrap();
        let error = fetch(&mirrors, &url, &access(Some(&servers), Some(&stranger))).await.unwrap_err();
        says(&error, &["does not accept the client certificate", "`tlsClientCertData`"], &[&stranger.key]);

        let client = clients.issue("plumb").unwrap();
        let mixed = Identity { certificate: client.certificate, key: stranger.key.clone() };
        let error = fetch(&mirrors, &url, &access(Some(&servers), Some(&mixed))).await.unwrap_err();
        says(&error, &["must be PEM and belong to each other"], &[&stranger.key]);
    }

    #[tokio::test]
    async fn a_server_that_wants_a_password_says_so() {
        let repository = Repository::new();
        let servers = Authority::new("servers").unwrap();
        let server = HttpsServer::start(&servers, None, |_| {
            let mut response = plumb_testkit::https::HttpResponse::status("401 Unauthorized");
            response.headers.push(("WWW-Authenticate".to_owned(), "Basic realm=\"git\"".to_owned()));
            response
        });
        let url = RepoUrl::parse(&format!("https://{}/work", server.unwrap().address())).unwrap();
        let mut access = access(Some(&servers), None);
        let error = fetch(&repository.mirrors(), &url, &access).await.unwrap_err();
        says(&error, &["wants credentials", "`username` and `password`"], &[]);
        access.password = Some(Secret::new("a-password-that-is-long-enough"));
        let error = fetch(&repository.mirrors(), &url, &access).await.unwrap_err();
        says(&error, &["does not accept the credentials"], &["a-password-that-is-long-enough"]);
        assert!(fetch(&repository.mirrors(), &url, &anonymous()).await.is_err());
    }
}
