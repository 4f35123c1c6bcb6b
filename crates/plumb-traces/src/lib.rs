//! Sends plumb's spans to an OpenTelemetry collector (OTLP over HTTP, protobuf).
//!
//! Only spans are sent: their fields are names of apps and reasons. Log lines stay in the log, where logins are blanked.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The address cannot be used.
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// Sends spans until it is stopped.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends what is left. Blocks until it is sent, or for five seconds.
    pub fn stop(&self) {
        // A collector that is away is no reason to fail.
        let _ = self.provider.shutdown();
    }
}

/// The layer that sends spans to the collector at this address, such as `http://127.0.0.1:4318`. Requests are sent on the
/// runtime of the caller.
pub fn layer<S>(endpoint: &str) -> Result<(impl Layer<S> + use<S>, Traces), TracesError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let client = Client {
        runtime: Handle::current(),
        client: reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()?,
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(PATIENCE)
        .build()?;
    let resource = Resource::builder()
        .with_service_name("plumb")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let layer = tracing_opentelemetry::layer()
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_tracer(provider.tracer("plumb"))
        .with_filter(filter_fn(|metadata| {
            metadata.is_span() && *metadata.level() <= Level::DEBUG && metadata.target().starts_with("plumb")
        }));
    Ok((layer, Traces { provider }))
}

/// Sends requests on the runtime: the exporter has a thread without one.
#[derive(Debug)]
struct Client {
    runtime: Handle,
    client: reqwest::Client,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let answer = client.execute(reqwest::Request::try_from(request)?).await?;
            let status = answer.status();
            // What a collector says about a batch is short; the exporter reads nothing of it.
            Ok::<_, reqwest::Error>((status, Bytes::new()))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}
