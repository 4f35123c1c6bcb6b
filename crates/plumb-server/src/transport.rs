//! With or without TLS.

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// With TLS.
    Tls,
    /// Without TLS: a proxy in front of plumb has the certificate.
    Plain,
}
