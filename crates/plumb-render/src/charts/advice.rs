//! What to do about a repository or registry that says no. Names settings by the names that Argo CD gives them.

use std::error::Error;

use rustls::AlertDescription;

use super::ChartRepository;
use crate::sandbox::SandboxError;

/// Certificates to trust that cannot be read.
pub(super) const BAD_CA: &str =
    "its entry in the ConfigMap argocd-tls-certs-cm is no certificate in PEM form";
/// A client certificate that cannot be used.
pub(super) const BAD_CLIENT: &str = "the client certificate of the repository's Secret cannot be used: \
    `tlsClientCertData` and `tlsClientCertKey` must be PEM and belong to each other";
/// A proxy that cannot be used.
pub(super) const BAD_PROXY: &str = "`proxy` in the repository's Secret is no address of a proxy";

/// What stands in the way.
enum Obstacle {
    /// The server's certificate is not trusted.
    Untrusted,
    /// The server wants to see a certificate, or another one.
    ClientCertificate,
    /// The certificate that it should be shown is none.
    UnusableCertificate,
    /// It wants a password, or another one.
    Credentials,
    /// Nothing that can be told.
    Unknown,
}

/// For a download that failed.
pub(super) fn of_download(repository: &ChartRepository, host: &str, error: &reqwest::Error) -> String {
    let is_refused = error.status().is_some_and(|status| matches!(status.as_u16(), 401 | 403));
    let obstacle = match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(_)) => Obstacle::Untrusted,
        Some(rustls::Error::AlertReceived(alert)) if is_about_certificate(*alert) => {
            Obstacle::ClientCertificate
        }
        Some(_) | None if is_refused => Obstacle::Credentials,
        Some(_) | None => Obstacle::Unknown,
    };
    text(repository, host, &obstacle)
}

/// For a pull by Helm, which gives nothing but text. It chooses words for a person, and nothing is decided by it.
pub(super) fn of_pull(repository: &ChartRepository, error: &SandboxError) -> String {
    let said = error.to_string().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let obstacle = if says(&["private key does not match", "failed to find any pem data", "load client cert"])
    {
        Obstacle::UnusableCertificate
    } else if says(&["tls: certificate required", "tls: bad certificate", "tls: unknown certificate"]) {
        Obstacle::ClientCertificate
    } else if says(&["failed to verify certificate", "x509:"]) {
        Obstacle::Untrusted
    } else if says(&["401", "403", "unauthorized", "forbidden", "denied"]) {
        Obstacle::Credentials
    } else {
        Obstacle::Unknown
    };
    let address = repository.shown();
    let host = address.trim_start_matches("oci://").split('/').next().unwrap_or_default();
    text(repository, host.split_once(':').map_or(host, |(name, _)| name), &obstacle)
}

fn text(repository: &ChartRepository, host: &str, obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Untrusted => format!(
            "the server's certificate is not trusted: put the certificate (PEM) of the authority that signed it into \
             the ConfigMap argocd-tls-certs-cm under the key `{host}`"
        ),
        Obstacle::ClientCertificate if repository.client.is_some() => {
            "the server does not accept the client certificate of the repository's Secret (`tlsClientCertData`): is it \
             signed by the authority that the server asks for, and still valid?"
                .to_owned()
        }
        Obstacle::ClientCertificate => {
            "the server wants a client certificate: put one into the repository's Secret as `tlsClientCertData` and \
             `tlsClientCertKey`"
                .to_owned()
        }
        Obstacle::UnusableCertificate => BAD_CLIENT.to_owned(),
        Obstacle::Credentials if repository.username.is_some() => {
            "the server does not accept the credentials of the repository's Secret: are they still valid, and may they \
             read this chart?"
                .to_owned()
        }
        Obstacle::Credentials => {
            "the server wants credentials: put `username` and `password` into the repository's Secret".to_owned()
        }
        Obstacle::Unknown => "check the address, the network and the credentials".to_owned(),
    }
}

/// What the TLS library said, wherever it is among the causes.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // The inside of such an error is not among its causes.
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = inside.and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
            return Some(found);
        }
        cause = inside.map(|inside| inside as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn is_about_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::HandshakeFailure
            | AlertDescription::AccessDenied
    )
}
