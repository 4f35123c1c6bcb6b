//! Servers that the address policy does not permit.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plumb_core::error_chain::error_chain;
use plumb_core::source::AddressPolicy;
use plumb_git::{RepoAccess, RepoUrl, TlsAccess};
use plumb_testkit::https::{Authority, HttpResponse, HttpsServer};

use crate::repository::Repository;

/// A server that gives every request the same answer, and counts connections.
fn server(address: &str, answer: String) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let n_connections: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&n_connections);
    // Ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, n_connections)
}

async fn refused(url: &str, policy: AddressPolicy) -> String {
    let repository = Repository::new();
    let access = RepoAccess { policy: Arc::new(policy), ..RepoAccess::default() };
    let fetched = repository.mirrors().fetch(&RepoUrl::parse(url).unwrap(), &access).await;
    error_chain(&fetched.err().unwrap())
}

#[tokio::test]
async fn they_are_not_asked() {
    let (port, n_connections) = server("127.0.0.1", String::new());
    for url in [
        format!("http://127.0.0.1:{port}/x"),
        format!("http://localhost:{port}/x"),
        format!("https://localhost:{port}/x"),
        format!("http://[::ffff:127.0.0.1]:{port}/x"),
        format!("ssh://git@localhost:{port}/x"),
        format!("git://localhost:{port}/x"),
        // No server listens there: the error is the same.
        "http://127.0.0.1:1/x".to_owned(),
    ] {
        let error = refused(&url, AddressPolicy::cluster([])).await;
        assert!(error.contains("is not permitted: it is a loopback address"), "{url}: {error}");
    }
    assert_eq!(n_connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_redirect_does_not_lead_there() {
    let (secret, n_secret) = server("127.0.0.2", String::new());
    for target in [format!("http://127.0.0.2:{secret}/x"), "http://169.254.169.254/latest".to_owned()] {
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: {target}/info/refs?service=git-upload-pack\r\nContent-Length: 0\r\n\r\n"
        );
        let (port, n_front) = server("127.0.0.1", answer);
        let policy = AddressPolicy::cluster([]).with_rules(["127.0.0.1".parse().unwrap()], []);
        let error = refused(&format!("http://127.0.0.1:{port}/x"), policy).await;
        assert!(error.contains("is not permitted"), "{target}: {error}");
        assert!(n_front.load(Ordering::SeqCst) > 0);
    }
    assert_eq!(n_secret.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn no_redirect_leads_from_https_to_http() {
    let (plain, n_plain) = server("127.0.0.1", String::new());
    let authority = Authority::new("servers").unwrap();
    let target = format!("http://127.0.0.1:{plain}/x/info/refs?service=git-upload-pack");
    let https = HttpsServer::start(&authority, None, move |_| HttpResponse {
        headers: vec![("Location".to_owned(), target.clone())],
        ..HttpResponse::status("302 Found")
    });
    let https = https.unwrap();
    let url = RepoUrl::parse(&format!("https://{}/x", https.address())).unwrap();
    let tls = TlsAccess { ca: Some(authority.certificate().to_owned()), ..TlsAccess::default() };
    let repository = Repository::new();
    let fetched = repository.mirrors().fetch(&url, &RepoAccess { tls, ..RepoAccess::default() }).await;
    assert!(fetched.is_err());
    assert_eq!(n_plain.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let error = refused("http://127.0.0.1:1/x", AddressPolicy::workstation()).await;
    assert!(error.contains("cannot connect to 127.0.0.1:1") && error.contains("refused"), "{error}");
    let error = refused("https://no-such-host.invalid/x", AddressPolicy::cluster([])).await;
    assert!(error.contains("cannot connect to no-such-host.invalid:443"), "{error}");
}
