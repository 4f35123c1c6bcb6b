//! Charts from repositories: a small server on this machine is the index, the archive store and the OCI registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use plumb_core::app::{DirectoryOptions, SourceTool};
use plumb_core::project::{Project, ProjectRules};
use plumb_core::source::{RepoPath, SourceFiles};
use plumb_render::{ChartRepository, Charts, Freshness, Limits};
use plumb_testkit::https::{Authority, HttpResponse, HttpsServer};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::workbench::{Workbench, has, names, tools};

/// What the server gives, and who asked for what.
#[derive(Default)]
pub(crate) struct Shelf {
    files: BTreeMap<String, (String, Vec<u8>)>,
    /// `user:password` that it wants to see.
    pub(crate) credentials: Option<String>,
    /// A token that it wants to see instead, and what it says to clients without.
    pub(crate) token: Option<(String, String)>,
    /// Where requests are sent on to, by path.
    pub(crate) redirects: BTreeMap<String, String>,
    requests: Vec<String>,
    /// The credentials of each request.
    pub(crate) authorizations: Vec<Option<String>>,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) shelf: Arc<Mutex<Shelf>>,
    pub(crate) host: String,
}

impl Server {
    /// One that talks TLS, and only to clients with a certificate.
    pub(crate) fn over_tls(servers: &Authority, clients: &Authority) -> Self {
        let shelf: Arc<Mutex<Shelf>> = Arc::default();
        let given = Arc::clone(&shelf);
        let server = HttpsServer::start(servers, Some(clients), move |request| {
            let mut shelf = given.lock().unwrap();
            shelf.requests.push(request.path.clone());
            let Some((kind, content)) = shelf.files.get(&request.path).cloned() else {
                let status = if request.path == "/v2/" { "200 OK" } else { "404 Not Found" };
                return HttpResponse::status(status);
            };
            let headers = vec![
                ("Content-Type".to_owned(), kind),
                ("Docker-Content-Digest".to_owned(), format!("sha256:{}", digest(&content))),
            ];
            HttpResponse { headers, body: content, ..HttpResponse::status("200 OK") }
        });
        Self { shelf, host: server.unwrap().address().to_string() }
    }

    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = Self { shelf: Arc::default(), host };
        let shelf = Arc::clone(&server.shelf);
        // Ends with the test's process; a test server has nothing to lose.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = Arc::clone(&shelf);
                std::thread::spawn(move || answer(stream, &shelf));
            }
        });
        server
    }

    pub(crate) fn put(&self, path: &str, kind: &str, content: impl Into<Vec<u8>>) {
        self.shelf.lock().unwrap().files.insert(path.to_owned(), (kind.to_owned(), content.into()));
    }

    /// An index of `web` with these versions, and their archives.
    pub(crate) fn offer(&self, charts: &[(&str, &[u8])]) {
        let mut index = "apiVersion: v1\nentries:\n  web:\n".to_owned();
        for (version, archive) in charts {
            let digest = digest(archive);
            let _ = writeln!(
                index,
                "  - {{name: web, version: {version}, urls: [web-{version}.tgz], digest: {digest}}}"
            );
            self.put(&format!("/charts/web-{version}.tgz"), "application/gzip", *archive);
        }
        self.put("/charts/index.yaml", "text/yaml", index);
    }

    pub(crate) fn repository(&self) -> ChartRepository {
        ChartRepository { url: format!("http://{}/charts", self.host), ..ChartRepository::default() }
    }

    pub(crate) fn requests(&self, what: &str) -> usize {
        self.shelf.lock().unwrap().requests.iter().filter(|path| path.contains(what)).count()
    }
}

fn answer(stream: TcpStream, shelf: &Mutex<Shelf>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut line, mut authorization) = (String::new(), None);
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_head = line.starts_with("HEAD");
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("authorization")
            {
                authorization = Some(value.trim().to_owned());
            }
        }
        let mut shelf = shelf.lock().unwrap();
        shelf.requests.push(path.clone());
        shelf.authorizations.push(authorization.clone());
        let basic =
            |pair: &String| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        let token = shelf.token.as_ref().map(|(token, _)| format!("Bearer {token}"));
        let challenge =
            shelf.token.as_ref().map_or("Basic realm=\"test\"", |(_, challenge)| challenge).to_owned();
        let refusal = format!("401 Unauthorized\r\nWWW-Authenticate: {challenge}");
        let wanted = token.or_else(|| shelf.credentials.as_ref().map(basic));
        let plain = path.split('?').next().unwrap_or_default();
        let target = shelf.redirects.get(plain).map(|target| format!("302 Found\r\nLocation: {target}"));
        let (status, kind, content): (&str, String, Vec<u8>) = if wanted.is_some() && wanted != authorization
        {
            (&refusal, String::new(), Vec::new())
        } else if let Some(target) = &target {
            (target, String::new(), Vec::new())
        } else if let Some((kind, content)) = shelf.files.get(plain) {
            ("200 OK", kind.clone(), content.clone())
        } else if plain == "/v2/" {
            ("200 OK", "application/json".to_owned(), b"{}".to_vec())
        } else {
            ("404 Not Found", String::new(), Vec::new())
        };
        drop(shelf);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: sha256:{}\r\n\r\n",
            content.len(),
            digest(&content)
        );
        let body = if is_head { &[][..] } else { &content };
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
            return;
        }
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A chart archive with these files below `web/`.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    raw_archive(|builder| {
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, format!("web/{path}"), content.as_bytes()).unwrap();
        }
    })
}

fn raw_archive(fill: impl FnOnce(&mut tar::Builder<flate2::write::GzEncoder<Vec<u8>>>)) -> Vec<u8> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    fill(&mut builder);
    builder.into_inner().unwrap().finish().unwrap()
}

pub(crate) fn chart(version: &str) -> Vec<u8> {
    archive(&[
        ("Chart.yaml", &format!("apiVersion: v2\nname: web\nversion: {version}\n")),
        ("values.yaml", "greeting: hello\n"),
        (
            "templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-web\"}\ndata: \
             {version: {{ .Chart.Version | quote }}, greeting: {{ .Values.greeting }}}\n",
        ),
    ])
}

pub(crate) struct Kept {
    _directory: tempfile::TempDir,
    pub(crate) charts: Charts,
}

pub(crate) fn charts() -> Kept {
    let directory = tempfile::tempdir().unwrap();
    let charts = Charts::new(directory.path().join("charts"), Limits::default()).unwrap();
    Kept { _directory: directory, charts }
}

pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn versions_come_from_the_index_and_stay_without_it() {
    let server = Server::start();
    let (one, two) = (chart("1.0.0"), chart("1.2.0"));
    server.offer(&[("1.0.0", &one), ("1.2.0", &two)]);
    let kept = charts();
    let asked = Instant::now();
    let fetch = async |version: &str| kept.charts.fetch(&server.repository(), "web", version, asked).await;
    let newest = fetch("^1.0").await.unwrap();
    assert_eq!(newest.version, "1.2.0");
    let text = newest.files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("1.2.0"));
    assert_eq!(fetch("~1.0.0").await.unwrap().version, "1.0.0");
    assert_eq!(server.requests("index.yaml"), 1, "one reason to ask, one request");
    kept.charts.fetch(&server.repository(), "web", "*", Instant::now()).await.unwrap();
    assert_eq!(server.requests("index.yaml"), 2, "asked anew for a new reason");
    assert_eq!(server.requests("web-1.2.0.tgz"), 1, "archives are kept");
    let missing = whole(&fetch("^2.0").await.err().unwrap());
    assert!(missing.contains("no chart `web` in version `^2.0`") && missing.contains("1.2.0"), "{missing}");
    // The server is gone: a chart with an exact version is still available from disk.
    server.shelf.lock().unwrap().files.clear();
    assert_eq!(fetch("1.2.0").await.unwrap().version, "1.2.0");
    let later = kept.charts.fetch(&server.repository(), "web", "^1.0", Instant::now()).await.err().unwrap();
    assert!(whole(&later).contains("index of http://127.0.0.1"), "{}", whole(&later));
}

#[tokio::test]
async fn archives_that_attack_are_refused() {
    let link = raw_archive(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "web/values.yaml", "/etc/passwd").unwrap();
    });
    let climbing = raw_archive(|builder| {
        let mut header = tar::Header::new_gnu();
        let name = b"web/../../out.yaml";
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_size(1);
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
    });
    let bomb = raw_archive(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_size(200 << 20);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, "web/values.yaml", std::io::Read::take(std::io::repeat(0), 200 << 20))
            .unwrap();
    });
    for (content, word) in [
        (link, "neither a file nor a directory"),
        (climbing, "leads outside"),
        (bomb, "unpacks to more than"),
        (b"no archive".to_vec(), "not a gzipped tar"),
    ] {
        let server = Server::start();
        server.offer(&[("1.0.0", &content)]);
        let error = charts().charts.fetch(&server.repository(), "web", "1.0.0", Instant::now()).await;
        let text = whole(&error.err().unwrap());
        assert!(text.contains(word), "{word}: {text}");
    }
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0"))]);
    server.put("/charts/web-1.0.0.tgz", "application/gzip", chart("6.6.6"));
    let error = charts().charts.fetch(&server.repository(), "web", "1.0.0", Instant::now()).await;
    assert!(whole(&error.err().unwrap()).contains("its digest is"));
    for (name, version) in [("--help", "1.0.0"), ("../web", "1.0.0"), ("web", "--devel"), ("", "1.0.0")] {
        let error = charts().charts.fetch(&server.repository(), name, version, Instant::now()).await;
        assert!(whole(&error.err().unwrap()).contains("not a valid name"), "{name} {version}");
    }
}

#[tokio::test]
async fn credentials_are_shown_to_their_own_host_only() {
    let (server, elsewhere) = (Server::start(), Server::start());
    server.shelf.lock().unwrap().credentials = Some("user:geheim".to_owned());
    elsewhere.shelf.lock().unwrap().credentials = Some("user:geheim".to_owned());
    let index = format!(
        "entries:\n  web:\n  - {{version: 1.0.0, urls: ['http://{}/web.tgz']}}\n  - {{version: 2.0.0, urls: [web.tgz]}}\n",
        elsewhere.host
    );
    server.put("/charts/index.yaml", "text/yaml", index);
    server.put("/charts/web.tgz", "application/gzip", chart("2.0.0"));
    elsewhere.put("/web.tgz", "application/gzip", chart("1.0.0"));
    let project = |source: &str| {
        let rules = ProjectRules { source_repos: vec![source.to_owned()], ..ProjectRules::default() };
        Arc::new(Project::compile(&rules).0)
    };
    let repository = |password: &str, permitted: Option<&str>| ChartRepository {
        username: Some("user".to_owned()),
        password: Some(password.to_owned()),
        pass_credentials: permitted.map(project),
        ..server.repository()
    };
    let kept = charts();
    let fetch = async |repository: &ChartRepository, version: &str| {
        let fetched = kept.charts.fetch(repository, "web", version, Instant::now()).await;
        fetched.map(|chart| chart.version).map_err(|error| whole(&error))
    };
    assert_eq!(fetch(&repository("geheim", None), "2.0.0").await.unwrap(), "2.0.0");
    let refused = fetch(&repository("geheim", None), "1.0.0").await.unwrap_err();
    assert!(refused.contains("401") && !refused.contains("geheim"), "{refused}");
    // An app may ask for more, but the project decides which servers see the credentials.
    let own = format!("http://{}/*", server.host);
    let refused = fetch(&repository("geheim", Some(&own)), "1.0.0").await.unwrap_err();
    assert!(refused.contains("401") && !refused.contains("geheim"), "{refused}");
    let other = format!("http://{}/*", elsewhere.host);
    assert_eq!(fetch(&repository("geheim", Some(&other)), "1.0.0").await.unwrap(), "1.0.0");
    // What one set of credentials fetched, another one does not get from the cache.
    let wrong = fetch(&repository("falsch", None), "2.0.0").await.unwrap_err();
    assert!(wrong.contains("401") && !wrong.contains("falsch"), "{wrong}");
}

#[tokio::test]
async fn registries_give_charts_by_tag_and_by_constraint() {
    let server = Server::start();
    server.shelf.lock().unwrap().credentials = Some("user:geheim".to_owned());
    fill_registry(&server);
    let kept = charts();
    let fetch = async |password: &str, version: &str| {
        let fetched = kept.charts.fetch(&registry(&server, password), "web", version, Instant::now()).await;
        fetched.map(|chart| chart.version).map_err(|error| whole(&error))
    };
    assert_eq!(fetch("geheim", "1.0.0").await, Ok("1.0.0".to_owned()));
    assert_eq!(fetch("geheim", "^1.0").await, Ok("1.1.0".to_owned()));
    let wrong = fetch("falsch", "1.0.0").await.unwrap_err();
    assert!(wrong.contains("fetch chart `web` 1.0.0") && !wrong.contains("falsch"), "{wrong}");
    assert!(wrong.contains("does not accept the credentials"), "{wrong}");
}

#[tokio::test]
async fn many_who_want_one_version_of_a_registry_share_one_pull() {
    let server = Server::start();
    fill_registry(&server);
    let kept = charts();
    let repository = registry(&server, "geheim");
    let n_pulls = || server.requests("/tags/list");
    let all = async |version: &str, since: Instant| {
        let calls = (0..10).map(|_| kept.charts.fetch(&repository, "web", version, since));
        for fetched in futures::future::join_all(calls).await {
            assert_eq!(fetched.unwrap().version, "1.1.0");
        }
    };
    let since = Instant::now();
    all("^1.0", since).await;
    assert_eq!(n_pulls(), 1);
    all("^1.0", since).await;
    assert_eq!(n_pulls(), 1, "one reason to ask, one request");
    all("^1.0", Instant::now()).await;
    assert_eq!(n_pulls(), 2, "asked anew for a new reason");
    let n_manifests = server.requests("/manifests/");
    all("1.1.0", Instant::now()).await;
    assert_eq!(server.requests("/manifests/"), n_manifests, "an exact version is kept");
    kept.charts.refetch(&repository, "web", "1.1.0", Instant::now()).await.unwrap();
    assert!(server.requests("/manifests/") > n_manifests);
}

#[tokio::test]
async fn many_who_want_one_archive_share_one_download() {
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0"))]);
    let kept = charts();
    let repository = server.repository();
    let calls = (0..10).map(|_| kept.charts.fetch(&repository, "web", "1.0.0", Instant::now()));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(server.requests("web-1.0.0.tgz"), 1);
    server.shelf.lock().unwrap().requests.clear();
    let since = Instant::now();
    let calls = (0..10).map(|_| kept.charts.fetch(&repository, "web", "9.9.9", since));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_err));
    assert_eq!(server.requests("index.yaml"), 1, "an error is shared as well");
}

#[tokio::test]
async fn a_chart_that_is_published_again_under_its_version_is_seen() {
    let described = |text: &str| {
        let definition = format!("apiVersion: v2\nname: web\nversion: 1.0.0\ndescription: {text}\n");
        archive(&[("Chart.yaml", &definition)])
    };
    let server = Server::start();
    server.offer(&[("1.0.0", &described("first"))]);
    let (kept, repository) = (charts(), server.repository());
    let read = |chart: plumb_render::Chart| {
        let text = chart.files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap();
        String::from_utf8(text).unwrap().lines().last().unwrap().to_owned()
    };
    let fetch = async |version: &str| {
        read(kept.charts.fetch(&repository, "web", version, Instant::now()).await.unwrap())
    };
    let renew =
        async || read(kept.charts.refetch(&repository, "web", "1.0.0", Instant::now()).await.unwrap());
    assert_eq!(fetch("^1.0").await, "description: first");
    server.offer(&[("1.0.0", &described("second"))]);
    assert_eq!(fetch("1.0.0").await, "description: first", "nobody was asked");
    assert_eq!(fetch("^1.0").await, "description: second");
    assert_eq!(fetch("1.0.0").await, "description: second");
    server.offer(&[("1.0.0", &described("third"))]);
    assert_eq!(renew().await, "description: third");
    // An index without digests: only the archive itself tells.
    let index = "entries:\n  web:\n  - {version: 1.0.0, urls: [web-1.0.0.tgz]}\n";
    server.offer(&[("1.0.0", &described("fourth"))]);
    server.put("/charts/index.yaml", "text/yaml", index);
    assert_eq!(fetch("^1.0").await, "description: third");
    assert_eq!(renew().await, "description: fourth");
}

#[tokio::test]
async fn credentials_in_an_address_are_not_shown() {
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0"))]);
    let kept = charts();
    for url in [
        format!("http://user:geheim@{}/charts", server.host),
        format!("http://user:geheim@{}/nothing", server.host),
        "https://user:ge/heim@host/charts".to_owned(),
        "ftp://user:geheim@host/charts".to_owned(),
        "oci://user:geheim@127.0.0.1:1/charts".to_owned(),
        "user:geheim@127.0.0.1:1/charts".to_owned(),
    ] {
        let repository = ChartRepository { url, ..ChartRepository::default() };
        let error = kept.charts.fetch(&repository, "web", "2.0.0", Instant::now()).await.err().unwrap();
        let text = format!("{} {error:?} {repository:?}", whole(&error));
        assert!(!text.contains("heim"), "{text}");
    }
}

pub(crate) fn registry(server: &Server, password: &str) -> ChartRepository {
    ChartRepository {
        url: format!("oci://{}/charts", server.host),
        username: Some("user".to_owned()),
        password: Some(password.to_owned()),
        plain_http: true,
        ..ChartRepository::default()
    }
}

/// `web` in two versions, as a registry has them.
pub(crate) fn fill_registry(server: &Server) {
    for version in ["1.0.0", "1.1.0"] {
        push(server, version, &chart(version));
    }
    server.put(
        "/v2/charts/web/tags/list",
        "application/json",
        r#"{"name":"charts/web","tags":["1.0.0","1.1.0"]}"#,
    );
}

/// Puts an archive under a tag, and returns the path of the archive.
pub(crate) fn push(server: &Server, tag: &str, archive: &[u8]) -> String {
    let config = "{}";
    let blob = |content: &[u8]| format!("/v2/charts/web/blobs/sha256:{}", digest(content));
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json",
                   "digest": format!("sha256:{}", digest(config.as_bytes())), "size": config.len()},
        "layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
                    "digest": format!("sha256:{}", digest(archive)), "size": archive.len()}],
    });
    let kind = "application/vnd.oci.image.manifest.v1+json";
    server.put(&format!("/v2/charts/web/manifests/{tag}"), kind, manifest.to_string());
    server.put(&blob(config.as_bytes()), "application/octet-stream", config);
    server.put(&blob(archive), "application/octet-stream", archive);
    blob(archive)
}

#[test]
fn charts_that_are_there_are_not_fetched_whatever_their_directory_is_called() {
    let dependency = |name: &str| {
        format!("- {{name: {name}, version: 1.0.0, repository: \"https://charts.example.com\"}}\n")
    };
    let definition = format!(
        "apiVersion: v2\nname: outer\nversion: 0.1.0\ndependencies:\n{}{}{}{}",
        dependency("here"),
        dependency("renamed"),
        dependency("packed"),
        dependency("missing")
    );
    let workbench = Workbench::new(&[
        ("outer/Chart.yaml", &definition),
        ("outer/charts/here/Chart.yaml", "apiVersion: v2\nname: here\nversion: 1.0.0\n"),
        ("outer/charts/other-1.0.0/Chart.yaml", "apiVersion: v2\nname: renamed\nversion: 1.0.0\n"),
        ("outer/charts/packed-1.0.0.tgz", "x"),
        ("outer/charts/README.md", "x"),
    ]);
    let missing = workbench.renderer.missing_dependencies(&workbench.request("outer", None)).unwrap();
    let missing: Vec<&str> = missing.iter().map(|dependency| dependency.name.as_str()).collect();
    assert_eq!(missing, ["missing"]);
}

#[tokio::test]
async fn a_chart_renders_with_two_versions_of_one_chart() {
    if !has(&tools().helm) {
        return;
    }
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0")), ("1.3.0", &chart("1.3.0")), ("2.0.0", &chart("2.0.0"))]);
    let host = &server.host;
    let entry = |version: &str, rest: &str| {
        format!("- {{name: web, version: {version}, repository: \"http://{host}/charts\"{rest}}}\n")
    };
    let definition = format!(
        "apiVersion: v2\nname: outer\nversion: 0.1.0\ndependencies:\n{}{}",
        entry("^1.0", ", alias: old"),
        entry("^2.0", ", alias: new")
    );
    let lock = format!("dependencies:\n{}{}", entry("1.0.0", ""), entry("2.0.0", ""));
    let workbench = Workbench::new(&[("outer/Chart.yaml", &definition), ("outer/Chart.lock", &lock)]);
    let mut request = workbench.request("outer", None);
    let kept = charts();
    for dependency in workbench.renderer.missing_dependencies(&request).unwrap() {
        let repository = ChartRepository { url: dependency.repository.clone(), ..ChartRepository::default() };
        let fetched =
            kept.charts.fetch(&repository, &dependency.name, &dependency.version, Instant::now()).await;
        request.chart_dependencies.insert(dependency, fetched.unwrap().files);
    }
    let rendered = workbench.renderer.render(&request, Freshness::Cached);
    let rendered = rendered.unwrap_or_else(|error| panic!("{}", error.full_message()));
    let mut versions: Vec<_> =
        rendered.manifests.iter().map(|manifest| manifest.value["data"]["version"].to_string()).collect();
    versions.sort();
    assert_eq!(versions, ["\"1.0.0\"", "\"2.0.0\""]);
}

#[tokio::test]
async fn a_chart_renders_with_the_charts_that_it_depends_on() {
    if !has(&tools().helm) {
        return;
    }
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0")), ("1.3.0", &chart("1.3.0"))]);
    let dependency = format!(
        "apiVersion: v2\nname: outer\nversion: 0.1.0\ndependencies:\n- {{name: web, version: ^1.0, repository: \"http://{}/charts\"}}\n\
         - {{name: near, version: 0.1.0, repository: \"file://../near\"}}\n",
        server.host
    );
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";
    let workbench = Workbench::new(&[
        ("outer/Chart.yaml", &dependency),
        ("outer/values.yaml", "web: {greeting: from-outside}\n"),
        ("outer/templates/a.yaml", &config_map.replace("NAME", "outer")),
        ("near/Chart.yaml", "apiVersion: v2\nname: near\nversion: 0.1.0\n"),
        ("near/templates/a.yaml", &config_map.replace("NAME", "near")),
    ]);
    let mut request = workbench.request("outer", None);
    let missing = workbench.renderer.missing_dependencies(&request).unwrap();
    assert_eq!(missing.iter().filter(|dependency| !dependency.is_local()).count(), 1);
    let kept = charts();
    for dependency in missing.into_iter().filter(|dependency| !dependency.is_local()) {
        let repository = ChartRepository { url: dependency.repository.clone(), ..ChartRepository::default() };
        let chart = kept
            .charts
            .fetch(&repository, &dependency.name, &dependency.version, Instant::now())
            .await
            .unwrap_or_else(|error| panic!("{}", whole(&error)));
        request.chart_dependencies.insert(dependency, chart.files);
    }
    let rendered = workbench
        .renderer
        .render(&request, Freshness::Cached)
        .unwrap_or_else(|error| panic!("{}", error.full_message()));
    let mut found = names(&rendered);
    found.sort();
    assert_eq!(found, ["ConfigMap/near", "ConfigMap/outer", "ConfigMap/web-web"]);
    let web =
        rendered.manifests.iter().find(|manifest| manifest.value["metadata"]["name"] == "web-web").unwrap();
    assert_eq!(web.value["data"], json!({"version": "1.3.0", "greeting": "from-outside"}));
    // Another tool does not care for the dependencies of a chart beside it.
    let plain = workbench.request("outer", Some(SourceTool::Directory(DirectoryOptions::default())));
    assert_eq!(workbench.renderer.missing_dependencies(&plain).unwrap(), []);
}
