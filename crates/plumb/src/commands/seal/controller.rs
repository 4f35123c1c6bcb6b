//! The Sealed Secrets controller: its certificate, and the questions that only it can answer.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::project::shown_repo_url;
use plumb_kube::{ApiError, ClusterClient, ServicePort};
use plumb_seal::{Certificate, SealingKey};
use serde_json::Value;

use super::args::ControllerArgs;
use crate::context::Context;
use crate::error::CommandError;

/// No certificate takes longer, or is larger.
const TIMEOUT: Duration = Duration::from_secs(15);
const MAX_BYTES: usize = 1 << 20;
/// From then on a user hears about the end of a certificate.
const SOON: jiff::SignedDuration = jiff::SignedDuration::from_hours(14 * 24);

/// The controller of a cluster.
pub(super) struct Controller {
    client: ClusterClient,
    port: ServicePort,
    described: String,
}

/// The answer to a question about one `SealedSecret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verified {
    /// The controller can open it.
    Yes,
    /// No key of the controller opens it under this name in this namespace.
    No,
}

impl Controller {
    /// Finds the Service of the controller.
    pub(super) async fn find(context: &Context, args: &ControllerArgs) -> Result<Self, CommandError> {
        let (namespace, name) = (&args.controller_namespace, &args.controller_name);
        let described = format!("Service {namespace}/{name}");
        let client = context.client().await?;
        let port = client
            .service_port(namespace, name)
            .await
            .map_err(|error| CommandError::api(format!("read {described}"), error))?
            .ok_or_else(|| {
                CommandError::new(format!("there is no {described} with a port"))
                    .hint("name the Service of the Sealed Secrets controller with --controller-name and --controller-namespace")
                    .hint("--cert FILE needs no cluster; `plumb seal --fetch-cert` prints the certificate")
            })?;
        Ok(Self { client, port, described })
    }

    /// The certificate, as PEM.
    pub(super) async fn certificate(&self) -> Result<Vec<u8>, CommandError> {
        let read = self.client.read_from_service(&self.port, "v1/cert.pem").await;
        let text = read.map_err(|error| self.failed("read the certificate of", error))?;
        Ok(text.to_vec())
    }

    /// Can the controller open it?
    pub(super) async fn verify(&self, sealed: &Value) -> Result<Verified, CommandError> {
        match self.client.ask_service(&self.port, "v1/verify", sealed).await {
            Ok(_) => Ok(Verified::Yes),
            Err(error) if error.code() == Some(409) => Ok(Verified::No),
            Err(error) => Err(self.failed("ask", error)),
        }
    }

    /// The same `SealedSecret`, encrypted with the newest key.
    pub(super) async fn rotate(&self, sealed: &Value) -> Result<Value, CommandError> {
        let answer = self.client.ask_service(&self.port, "v1/rotate", sealed).await;
        let answer = answer.map_err(|error| {
            // The controller says no more than "internal error" if it cannot open one.
            self.failed("re-encrypt with", error)
                .hint("`plumb seal --validate` shows whether the controller can open it")
        })?;
        serde_json::from_slice(&answer).map_err(|_| {
            CommandError::new(format!("cannot read the answer of {}: it is not JSON", self.described))
        })
    }

    fn failed(&self, what: &str, error: ApiError) -> CommandError {
        let is_down = error.code() == Some(503);
        CommandError::api(format!("{what} the controller behind {}", self.described), error)
            .hint_if(is_down, "is a pod of the controller ready?")
    }
}

/// The key to seal with: from --cert, or else from the controller.
pub(super) async fn sealing_key(
    context: &Context,
    args: &ControllerArgs,
    now: Timestamp,
) -> Result<SealingKey, CommandError> {
    // kubeseal takes files as addresses, too.
    let cert = args.cert.as_ref().map(|cert| cert.strip_prefix("file://").unwrap_or(cert));
    let (place, text) = match cert {
        Some(cert) if cert.contains("://") => (shown_repo_url(cert), download(cert).await?),
        Some(file) => {
            let read = std::fs::read(file);
            (file.to_owned(), read.map_err(|error| CommandError::because(format!("read {file}"), error))?)
        }
        None => {
            let controller = Controller::find(context, args).await?;
            (controller.described.clone(), controller.certificate().await?)
        }
    };
    key_of(context, &place, &text, now)
}

fn key_of(context: &Context, place: &str, text: &[u8], now: Timestamp) -> Result<SealingKey, CommandError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        CommandError::because(format!("seal with the certificate of {place}"), error)
            .hint("`plumb seal --fetch-cert > cert.pem` saves the certificate that the controller uses now")
    };
    let certificate = Certificate::from_pem(text).map_err(|error| failed(error.into()))?;
    let key = SealingKey::of(&certificate, now).map_err(|error| failed(error.into()))?;
    if certificate.not_after().duration_since(now) < SOON {
        let until = certificate.not_after();
        context.out.note(&format!("warning: the certificate of {place} expires at {until}"));
    }
    Ok(key)
}

/// Reads a certificate from an address. Whoever can change the answer can read what is sealed with it, so the address
/// must be https, or on this machine.
async fn download(url: &str) -> Result<Vec<u8>, CommandError> {
    let shown = shown_repo_url(url);
    let failed = |error: reqwest::Error| {
        CommandError::because(format!("read the certificate at {shown}"), error.without_url())
    };
    let address: reqwest::Url = url.parse().map_err(|_| {
        CommandError::usage(format!("cannot read the certificate at {shown}: it is not an address"))
    })?;
    let is_https = address.scheme() == "https";
    let host = address.host_str().unwrap_or_default();
    let is_here =
        host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let is_safe = is_https || (address.scheme() == "http" && is_here);
    if !is_safe {
        return Err(CommandError::usage(format!(
            "cannot read the certificate at {shown}: the address is not https"
        ))
        .hint("an attacker who can change this answer can read everything that is sealed with it")
        .hint("download it, check it, and pass the file"));
    }
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(failed)?;
    let mut answer = client.get(address).send().await.map_err(failed)?.error_for_status().map_err(failed)?;
    if answer.status() != reqwest::StatusCode::OK {
        let status = answer.status();
        return Err(CommandError::new(format!(
            "cannot read the certificate at {shown}: the server answers {status}"
        ))
        .hint_if(status.is_redirection(), "pass the address that it redirects to"));
    }
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(failed)? {
        text.extend_from_slice(&part);
        if text.len() > MAX_BYTES {
            return Err(CommandError::new(format!(
                "cannot read the certificate at {shown}: the answer is too large"
            )));
        }
    }
    Ok(text)
}
