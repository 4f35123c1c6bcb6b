//! How to fix a failed download. Settings have the names that Argo CD gives them.

use std::error::Error;

use rustls::AlertDescription;

use super::repository::ChartRepository;

/// The CA certificates cannot be parsed.
pub(super) const BAD_CA: &str = "its entry in the ConfigMap argocd-tls-certs-cm is not a PEM certificate";
/// The client certificate cannot be used.
pub(super) const BAD_CLIENT: &str = "the client certificate of the repository's Secret cannot be used: \
    `tlsClientCertData` and `tlsClientCertKey` must be PEM and belong to each other";
/// The proxy address cannot be used.
pub(super) const BAD_PROXY: &str = "`proxy` in the repository's Secret is not a valid proxy address";

/// Why the server or the client refused.
enum FailureCause {
    /// The server's certificate is not trusted.
    Untrusted,
    /// The server requires a client certificate, or another one.
    ClientCertificate,
    /// The server requires credentials, or other ones.
    Credentials,
    /// Any other cause.
    Unknown,
}

/// Advice for a failed download.
pub(super) fn of_download(repository: &ChartRepository, host: &str, error: &reqwest::Error) -> String {
    let is_refused = error.status().is_some_and(|status| matches!(status.as_u16(), 401 | 403));
    let cause = match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(_)) => FailureCause::Untrusted,
        Some(rustls::Error::AlertReceived(alert)) if is_about_certificate(*alert) => {
            FailureCause::ClientCertificate
        }
        Some(_) | None if is_refused => FailureCause::Credentials,
        Some(_) | None => FailureCause::Unknown,
    };
    text(repository, host, &cause)
}

fn text(repository: &ChartRepository, host: &str, cause: &FailureCause) -> String {
    match cause {
        FailureCause::Untrusted => format!(
            "the server's certificate is not trusted: put the certificate (PEM) of the authority that signed it into \
             the ConfigMap argocd-tls-certs-cm under the key `{host}`"
        ),
        FailureCause::ClientCertificate if repository.client.is_some() => {
            "the server does not accept the client certificate of the repository's Secret (`tlsClientCertData`): is it \
             signed by the authority that the server asks for, and still valid?"
                .to_owned()
        }
        FailureCause::ClientCertificate => {
            "the server requires a client certificate: put one into the repository's Secret as `tlsClientCertData` and \
             `tlsClientCertKey`"
                .to_owned()
        }
        FailureCause::Credentials if repository.username.is_some() => {
            "the server does not accept the credentials of the repository's Secret: are they still valid, and may they \
             read this chart?"
                .to_owned()
        }
        FailureCause::Credentials => {
            "the server requires credentials: put `username` and `password` into the repository's Secret".to_owned()
        }
        FailureCause::Unknown => "check the address, the network and the credentials".to_owned(),
    }
}

/// The TLS library's error among the causes.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut current: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // `source()` of an I/O error skips the error inside it.
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = inside.and_then(|inside| inside.downcast_ref::<rustls::Error>()) {
            return Some(found);
        }
        current = inside.map(|inside| inside as &(dyn Error + 'static)).or_else(|| error.source());
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
