//! The server of the witness under clients that are not the API server.

#![expect(clippy::unwrap_used, reason = "what cannot be done fails the test")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::object::Manifest;
use plumb_kube::{Witness, WitnessProbe};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// The TLS connection of an API server that trusts the certificate of the registration.
fn trusted(address: SocketAddr, ca_bundle: &str) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let pem = STANDARD.decode(ca_bundle).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::from(address.ip());
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    rustls::StreamOwned::new(session, connect(address))
}

fn post(stream: &mut (impl Read + Write), path: &str, body: &Value) -> String {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: witness\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn only_requests_with_the_secret_are_answered_and_idle_ones_end() {
    let witness = Witness::listen((Ipv4Addr::LOCALHOST, 0).into(), "127.0.0.1").unwrap();
    let (address, ca_bundle, path) =
        (witness.address(), witness.ca_bundle().to_owned(), witness.path().to_owned());
    let _server =
        witness.serve(Arc::new(|user, manager| (user, manager) == ("plumb", "argocd-controller"))).unwrap();
    let review = |user: &str| {
        json!({"request": {
            "uid": "u", "userInfo": {"username": user}, "options": {"fieldManager": "argocd-controller"},
            "object": {"metadata": {"annotations": {"a": "b"}}},
        }})
    };

    for wrong in ["/", "/witness/", &path[..path.len() - 1], &format!("{path}0")] {
        let answer = post(&mut trusted(address, &ca_bundle), wrong, &review("mallory"));
        assert!(answer.starts_with("HTTP/1.1 404"), "{wrong}: {answer}");
    }
    let answer = post(&mut trusted(address, &ca_bundle), &path, &review("mallory"));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("patch"), "{answer}");
    let answer = post(&mut trusted(address, &ca_bundle), &path, &review("plumb"));
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("patch"), "{answer}");

    // Connections that send nothing end by themselves, and those beyond the share of a client at once.
    let started = Instant::now();
    let idle: Vec<TcpStream> = (0..80).map(|_| connect(address)).collect();
    for mut stream in idle.into_iter().rev() {
        let _ = stream.read_to_end(&mut Vec::new());
        assert!(started.elapsed() < LIMIT / 2, "an idle connection does not end");
    }
    let answer = post(&mut trusted(address, &ca_bundle), &path, &review("mallory"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_probe_is_answered_by_the_witness_of_its_registration_while_that_runs() {
    let witness = Witness::listen((Ipv4Addr::LOCALHOST, 0).into(), "127.0.0.1").unwrap();
    let registration = |path: &str| {
        let url = format!("https://{}{path}", witness.address());
        let config = json!({"url": url, "caBundle": witness.ca_bundle()});
        let value = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "w"}, "webhooks": [{"clientConfig": config}],
        });
        Manifest::new(value).unwrap()
    };
    let mut probe = WitnessProbe::of(&registration(witness.path())).unwrap();
    let mut wrong = WitnessProbe::of(&registration("/witness/guess")).unwrap();
    // It listens and does not serve yet: as a process that is frozen, the kernel accepts and no process answers.
    assert!(!probe.is_answered(Duration::from_millis(100)).await);
    let server = witness.serve(Arc::new(|_, _| false)).unwrap();
    for _ in 0..3 {
        assert!(probe.is_answered(LIMIT).await, "on one connection");
    }
    assert!(!wrong.is_answered(LIMIT).await);
    drop(server);
    let gone = async {
        while probe.is_answered(LIMIT).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.unwrap();
}
