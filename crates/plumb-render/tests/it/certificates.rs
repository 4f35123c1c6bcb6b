//! Helm repositories and registries behind TLS that want to see a client's certificate.

use std::time::Instant;

use plumb_render::{ChartRepository, ClientCertificate};
use plumb_testkit::https::{Authority, Identity};

use crate::charts::{Server, chart, charts, fill_registry, whole};

struct Scene {
    server: Server,
    servers: Authority,
    clients: Authority,
}

fn scene() -> Scene {
    let (servers, clients) = (Authority::new("servers").unwrap(), Authority::new("clients").unwrap());
    let server = Server::over_tls(&servers, &clients);
    server.offer(&[("1.0.0", &chart("1.0.0"))]);
    fill_registry(&server);
    Scene { server, servers, clients }
}

/// Both ways to a chart: an index over https, and a registry.
fn addresses(server: &Server) -> Vec<String> {
    vec![format!("https://{}/charts", server.host), format!("oci://{}/charts", server.host)]
}

fn repository(url: &str, ca: Option<&Authority>, client: Option<&Identity>) -> ChartRepository {
    ChartRepository {
        url: url.to_owned(),
        ca: ca.map(|authority| authority.certificate().to_owned()),
        client: client.map(|client| ClientCertificate {
            certificate: client.certificate.clone(),
            key: client.key.clone(),
        }),
        ..ChartRepository::default()
    }
}

/// The version that came, or everything that a user would read.
async fn fetch(repository: &ChartRepository) -> Result<String, String> {
    let fetched = charts().charts.fetch(repository, "web", "1.0.0", Instant::now()).await;
    fetched.map(|chart| chart.version).map_err(|error| whole(&error))
}

/// The error says all of this and no line of a key.
fn says(error: &str, words: &[&str], key: &str) {
    for word in words {
        assert!(error.contains(word), "does not say {word:?}: {error}");
    }
    for line in key.lines().filter(|line| !line.starts_with("-----")) {
        assert!(!error.contains(line), "shows a key: {error}");
    }
}

#[tokio::test]
async fn the_right_certificates_get_in() {
    let Scene { server, servers, clients } = scene();
    let client = clients.issue("plumb").unwrap();
    for url in addresses(&server) {
        let found = fetch(&repository(&url, Some(&servers), Some(&client))).await;
        assert_eq!(found.as_deref(), Ok("1.0.0"), "{url}");
        let careless = ChartRepository { insecure: true, ..repository(&url, None, Some(&client)) };
        assert_eq!(fetch(&careless).await.as_deref(), Ok("1.0.0"), "{url}");
    }
}

#[tokio::test]
async fn an_authority_that_is_not_known_is_not_trusted() {
    let Scene { server, clients, .. } = scene();
    let client = clients.issue("plumb").unwrap();
    let other = Authority::new("other").unwrap();
    for url in addresses(&server) {
        for ca in [None, Some(&other)] {
            let error = fetch(&repository(&url, ca, Some(&client))).await.unwrap_err();
            let words = ["127.0.0.1", "is not trusted", "argocd-tls-certs-cm under the key `127.0.0.1`"];
            says(&error, &words, &client.key);
        }
    }
    assert_eq!(server.requests(""), 0, "nobody got in");
}

#[tokio::test]
async fn client_certificates_that_the_server_does_not_accept_say_so() {
    let Scene { server, servers, clients } = scene();
    let stranger = Authority::new("others").unwrap().issue("plumb").unwrap();
    for url in addresses(&server) {
        let error = fetch(&repository(&url, Some(&servers), None)).await.unwrap_err();
        says(&error, &["requires a client certificate", "`tlsClientCertData`", "`tlsClientCertKey`"], "");
        let error = fetch(&repository(&url, Some(&servers), Some(&stranger))).await.unwrap_err();
        says(&error, &["does not accept the client certificate", "`tlsClientCertData`"], &stranger.key);
        let client = clients.issue("plumb").unwrap();
        let mixed = Identity { certificate: client.certificate, key: stranger.key.clone() };
        let error = fetch(&repository(&url, Some(&servers), Some(&mixed))).await.unwrap_err();
        says(&error, &["must be PEM and belong to each other"], &stranger.key);
    }
    assert_eq!(server.requests(""), 0, "nobody got in");
}

#[tokio::test]
async fn a_chart_that_one_certificate_fetched_is_not_for_another() {
    let Scene { server, servers, clients } = scene();
    let client = clients.issue("plumb").unwrap();
    let kept = charts();
    let url = format!("https://{}/charts", server.host);
    let with = repository(&url, Some(&servers), Some(&client));
    assert!(kept.charts.fetch(&with, "web", "1.0.0", Instant::now()).await.is_ok());
    let without = repository(&url, Some(&servers), None);
    assert!(kept.charts.fetch(&without, "web", "1.0.0", Instant::now()).await.is_err());
}

#[tokio::test]
async fn a_proxy_of_the_secret_is_used_and_its_password_not_shown() {
    let Scene { server, servers, clients } = scene();
    let client = clients.issue("plumb").unwrap();
    let url = format!("https://{}/charts", server.host);
    let through = |proxy: &str, no_proxy: Option<&str>| ChartRepository {
        proxy: Some(proxy.to_owned()),
        no_proxy: no_proxy.map(str::to_owned),
        ..repository(&url, Some(&servers), Some(&client))
    };
    // No server listens there.
    let dead = "http://user:geheim@127.0.0.1:1";
    let error = fetch(&through(dead, None)).await.unwrap_err();
    assert!(!error.contains("geheim"), "{error}");
    assert_eq!(fetch(&through(dead, Some("127.0.0.1"))).await.as_deref(), Ok("1.0.0"));
}
