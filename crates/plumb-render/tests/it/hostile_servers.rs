//! Helm repositories and registries that attack: wrong charts, endless answers, redirects to other servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use plumb_core::source::{AddressPolicy, RepoPath, SourceFiles as _};
use plumb_render::ChartRepository;
use plumb_testkit::https::{Authority, HttpResponse, HttpsServer};

use crate::charts::{Kept, Server, archive, chart, charts, digest, fill_registry, push, registry, whole};

/// A policy that permits the servers of a test at 127.0.0.1, but no other address of this machine.
fn policy() -> Arc<AddressPolicy> {
    Arc::new(AddressPolicy::cluster([]).with_rules(["127.0.0.1".parse().unwrap()], []))
}

async fn fetch(kept: &Kept, repository: &ChartRepository, version: &str) -> Result<String, String> {
    let fetched = kept.charts.fetch(repository, "web", version, Instant::now()).await;
    let chart = fetched.map_err(|error| whole(&error))?;
    let definition = chart.files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap();
    assert!(String::from_utf8(definition).unwrap().contains(&chart.version));
    Ok(chart.version)
}

/// The error says this, and the other server was not asked.
fn refused(result: Result<String, String>, words: &str, other: &Server) {
    let error = result.unwrap_err();
    assert!(error.contains(words), "does not say {words:?}: {error}");
    assert_eq!(other.requests(""), 0, "{error}");
}

#[tokio::test]
async fn a_tag_cannot_take_the_place_of_another_version() {
    let server = Server::start();
    fill_registry(&server);
    push(
        &server,
        "9.9.9-evil",
        &archive(&[("Chart.yaml", "name: web\nversion: 1.0.0\ndescription: evil\n")]),
    );
    push(&server, "2.0.0", &archive(&[("Chart.yaml", "name: other\nversion: 2.0.0\n")]));
    let (kept, repository) = (charts(), registry(&server, "geheim"));
    for (version, words) in [
        (
            "9.9.9-evil",
            "gives another chart for `web` 9.9.9-evil: its Chart.yaml says name \"web\" and version \"1.0.0\"",
        ),
        ("2.0.0", "its Chart.yaml says name \"other\""),
    ] {
        let error = fetch(&kept, &repository, version).await.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(server.requests("manifests/1.0.0"), 0);
    let chart = kept.charts.fetch(&repository, "web", "1.0.0", Instant::now()).await.unwrap();
    let definition = chart.files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap();
    assert!(!String::from_utf8(definition).unwrap().contains("evil"));
    assert_eq!(server.requests("manifests/1.0.0"), 1, "the registry was asked for the version itself");
}

#[tokio::test]
async fn tags_spell_a_plus_as_an_underscore() {
    let server = Server::start();
    let content = archive(&[("Chart.yaml", "name: web\nversion: 1.0.0+build.5\n")]);
    push(&server, "1.0.0_build.5", &content);
    server.put("/v2/charts/web/tags/list", "application/json", r#"{"tags":["latest","1.0.0_build.5"]}"#);
    let (kept, repository) = (charts(), registry(&server, "geheim"));
    assert_eq!(fetch(&kept, &repository, "1.0.0+build.5").await.as_deref(), Ok("1.0.0+build.5"));
    assert_eq!(fetch(&kept, &repository, "^1.0").await.as_deref(), Ok("1.0.0+build.5"));
    assert_eq!(server.requests("/blobs/"), 1, "both are the same archive");
}

#[tokio::test]
async fn an_index_cannot_give_another_chart() {
    let server = Server::start();
    server.offer(&[("1.0.0", &chart("1.0.0")), ("2.0.0", &chart("1.0.0"))]);
    let kept = charts();
    let error = fetch(&kept, &server.repository(), "2.0.0").await.unwrap_err();
    assert!(error.contains("gives another chart for `web` 2.0.0"), "{error}");
    assert_eq!(fetch(&kept, &server.repository(), "1.0.0").await.as_deref(), Ok("1.0.0"));
}

#[tokio::test]
async fn a_registry_gives_what_its_manifest_says() {
    let server = Server::start();
    let blob = push(&server, "1.0.0", &chart("1.0.0"));
    server.put(&blob, "application/octet-stream", archive(&[("Chart.yaml", "name: web\nversion: 1.0.0\n")]));
    let (kept, repository) = (charts(), registry(&server, "geheim"));
    let error = fetch(&kept, &repository, "1.0.0").await.unwrap_err();
    assert!(error.contains("its digest is"), "{error}");
    let manifest = |size: u64| {
        let layer = format!(
            r#"{{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:{}","size":{size}}}"#,
            digest(b"x")
        );
        format!("{{\"layers\":[{layer}]}}")
    };
    server.put("/v2/charts/web/manifests/3.0.0", "", manifest(1 << 30));
    let n_blobs = server.requests("/blobs/");
    let error = fetch(&kept, &repository, "3.0.0").await.unwrap_err();
    assert!(error.contains("more than 67108864 bytes"), "{error}");
    assert_eq!(server.requests("/blobs/"), n_blobs, "nothing was fetched");
    server.put("/v2/charts/web/manifests/4.0.0", "", "[".repeat(2 << 20));
    let error = fetch(&kept, &repository, "4.0.0").await.unwrap_err();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn servers_that_are_not_permitted_are_not_asked() {
    let local = Server::start();
    local.offer(&[("1.0.0", &chart("1.0.0"))]);
    let port = local.host.rsplit(':').next().unwrap().to_owned();
    let policy = Arc::new(AddressPolicy::cluster([]));
    for url in [
        format!("http://{}/charts", local.host),
        format!("http://localhost:{port}/charts"),
        format!("http://[::ffff:127.0.0.1]:{port}/charts"),
        format!("oci://localhost:{port}/charts"),
        format!("{}/charts", local.host),
        // No server listens there: the error is the same.
        "http://127.0.0.1:1/charts".to_owned(),
    ] {
        let repository = ChartRepository {
            url,
            policy: Arc::clone(&policy),
            plain_http: true,
            ..ChartRepository::default()
        };
        let result = fetch(&charts(), &repository, "1.0.0").await;
        refused(result, "is not permitted: it is a loopback address", &local);
    }
    for url in ["http://2130706433/charts", "http://0x7f.1/charts"] {
        let repository = ChartRepository { url: url.to_owned(), ..ChartRepository::default() };
        assert!(fetch(&charts(), &repository, "1.0.0").await.unwrap_err().contains("is not an http(s)"));
    }
}

#[tokio::test]
async fn what_a_server_names_is_judged_too() {
    let (server, other) = (Server::start(), Server::start_at("127.0.0.2"));
    let refusal = "127.0.0.2 is not permitted";
    let repository = ChartRepository { policy: policy(), ..server.repository() };
    let elsewhere = format!("http://{}/x", other.host);
    // A redirect of the index.
    let redirect = |path: &str, target: &str| {
        server.shelf.lock().unwrap().redirects.insert(path.to_owned(), target.to_owned());
    };
    redirect("/charts/index.yaml", &elsewhere);
    refused(fetch(&charts(), &repository, "1.0.0").await, refusal, &other);
    // A redirect to itself has an end.
    redirect("/charts/index.yaml", "/charts/index.yaml");
    refused(fetch(&charts(), &repository, "1.0.0").await, "redirects too often", &other);
    redirect("/charts/index.yaml", "file:///etc/passwd");
    refused(fetch(&charts(), &repository, "1.0.0").await, "not http(s)", &other);
    server.shelf.lock().unwrap().redirects.clear();
    // An address in the index.
    let index = format!(
        "entries:\n  web:\n  - {{version: 1.0.0, urls: ['{elsewhere}']}}\n  - {{version: 2.0.0, urls: ['file:///etc/passwd']}}\n"
    );
    server.put("/charts/index.yaml", "text/yaml", index);
    refused(fetch(&charts(), &repository, "1.0.0").await, refusal, &other);
    refused(fetch(&charts(), &repository, "2.0.0").await, "is not an http(s)", &other);
    // A registry: its archive, and its token server.
    let registry = ChartRepository { policy: policy(), ..registry(&server, "geheim") };
    let blob = push(&server, "1.0.0", &chart("1.0.0"));
    redirect(&blob, &elsewhere);
    refused(fetch(&charts(), &registry, "1.0.0").await, refusal, &other);
    server.shelf.lock().unwrap().token = Some(("t".to_owned(), format!("Bearer realm=\"{elsewhere}\"")));
    refused(fetch(&charts(), &registry, "1.0.0").await, refusal, &other);
}

#[tokio::test]
async fn a_password_goes_to_the_token_server_and_a_token_to_the_registry_only() {
    let (server, tokens, storage) = (Server::start(), Server::start(), Server::start());
    let blob = push(&server, "1.0.0", &chart("1.0.0"));
    storage.put("/x", "application/octet-stream", chart("1.0.0"));
    tokens.put("/token", "application/json", r#"{"token":"t0ken"}"#);
    {
        let mut shelf = server.shelf.lock().unwrap();
        shelf.redirects.insert(blob, format!("http://{}/x", storage.host));
        let challenge = format!("Bearer realm=\"http://{}/token\",service=\"s\"", tokens.host);
        shelf.token = Some(("t0ken".to_owned(), challenge));
    }
    assert_eq!(fetch(&charts(), &registry(&server, "geheim"), "1.0.0").await.as_deref(), Ok("1.0.0"));
    assert_eq!(tokens.requests("scope=repository%3Acharts%2Fweb%3Apull"), 1);
    let seen = |server: &Server| server.shelf.lock().unwrap().authorizations.clone();
    assert_eq!(seen(&storage), [None]);
    assert!(seen(&tokens).iter().flatten().all(|text| text.starts_with("Basic ")));
    assert!(seen(&server).iter().flatten().all(|text| text == "Bearer t0ken"));
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    let (server, other) = (Server::start(), Server::start());
    other.offer(&[("1.0.0", &chart("1.0.0"))]);
    let target = format!("http://{}/charts/index.yaml", other.host);
    server.shelf.lock().unwrap().redirects.insert("/charts/index.yaml".to_owned(), target);
    let archive = format!("http://{}/charts/web-1.0.0.tgz", other.host);
    server.shelf.lock().unwrap().redirects.insert("/charts/web-1.0.0.tgz".to_owned(), archive);
    let repository = ChartRepository {
        username: Some("user".to_owned()),
        password: Some("geheim".to_owned()),
        ..server.repository()
    };
    assert_eq!(fetch(&charts(), &repository, "1.0.0").await.as_deref(), Ok("1.0.0"));
    assert!(server.shelf.lock().unwrap().authorizations.iter().all(Option::is_some));
    assert!(other.shelf.lock().unwrap().authorizations.iter().all(Option::is_none));
}

#[tokio::test]
async fn no_redirect_leads_from_https_to_http() {
    let plain = Server::start();
    let authority = Authority::new("servers").unwrap();
    let target = format!("http://{}/charts/index.yaml", plain.host);
    let server = HttpsServer::start(&authority, None, move |_| HttpResponse {
        headers: vec![("Location".to_owned(), target.clone())],
        ..HttpResponse::status("302 Found")
    });
    let repository = ChartRepository {
        url: format!("https://{}/charts", server.unwrap().address()),
        ca: Some(authority.certificate().to_owned()),
        ..ChartRepository::default()
    };
    refused(fetch(&charts(), &repository, "1.0.0").await, "redirects from https to http", &plain);
}

/// A server whose answer never ends.
fn endless(start: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    // Ends when the client closes the connection.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(format!("{:x}\r\n{start}\r\n", start.len()).as_bytes());
            let chunk = format!("10000\r\n{}\r\n", "1,".repeat(0x8000));
            while stream.write_all(chunk.as_bytes()).is_ok() {}
        }
    });
    host
}

#[tokio::test]
async fn endless_answers_are_cut_off() {
    let host = endless("entries:\n  web: [");
    let repository = ChartRepository {
        url: format!("http://{host}/charts"),
        max_index: Some(1 << 20),
        ..ChartRepository::default()
    };
    let error = fetch(&charts(), &repository, "1.0.0").await.unwrap_err();
    assert!(error.contains("index of") && error.contains("more than 1048576 bytes"), "{error}");
    let registry =
        ChartRepository { url: format!("oci://{host}"), plain_http: true, ..ChartRepository::default() };
    for version in ["1.0.0", "^1.0"] {
        let error = fetch(&charts(), &registry, version).await.unwrap_err();
        assert!(error.contains("it has more than"), "{version}: {error}");
    }
}
