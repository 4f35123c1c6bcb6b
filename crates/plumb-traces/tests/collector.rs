//! What a collector receives.

use anyhow::{Context, Result, ensure};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tracing::{debug_span, info, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

/// Answers one request, and returns its path and its body.
async fn one_request(listener: TcpListener) -> Result<(String, Vec<u8>)> {
    let (stream, _) = listener.accept().await?;
    let mut stream = BufReader::new(stream);
    let (mut path, mut n_bytes) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
            n_bytes = length.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    Ok((path, body))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_receives_spans_with_their_parents_and_no_log_line() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}/", listener.local_addr()?);
    let received = tokio::spawn(one_request(listener));
    let (layer, traces) = plumb_traces::layer(&endpoint)?;
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let _run = info_span!(target: "plumb_engine", "reconcile", app = "argocd/shop").entered();
        let _step = debug_span!(target: "plumb_engine", "gather").entered();
        info!(target: "plumb_engine", "fetched https://bob:s3cret@host/x");
        let _other = info_span!(target: "hyper", "connection").entered();
    });
    tokio::task::spawn_blocking(move || traces.stop()).await?;
    let (path, body) = received.await??;
    ensure!(path == "/v1/traces", "{path}");
    ensure!(!String::from_utf8_lossy(&body).contains("s3cret"), "a log line was sent");
    let request = ExportTraceServiceRequest::decode(body.as_slice())?;
    let [resource] = request.resource_spans.as_slice() else { anyhow::bail!("{request:?}") };
    let described = format!("{:?}", resource.resource);
    ensure!(described.contains("service.name") && described.contains("\"plumb\""), "{described}");
    let spans: Vec<_> = resource.scope_spans.iter().flat_map(|scope| &scope.spans).collect();
    let named = |name: &str| spans.iter().find(|span| span.name == name).context("a span is missing");
    ensure!(spans.len() == 2, "{spans:?}");
    let (run, step) = (named("reconcile")?, named("gather")?);
    ensure!(step.parent_span_id == run.span_id && step.trace_id == run.trace_id, "{spans:?}");
    ensure!(format!("{:?}", run.attributes).contains("argocd/shop"), "{run:?}");
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_none_is_an_error() {
    assert!(plumb_traces::layer::<tracing_subscriber::Registry>("not an address").is_err());
}
