//! Certificates, and values encrypted for the Sealed Secrets controller.
//!
//! The only crate with cryptography of its own use: the algorithms are those of `aws-lc-rs`, the reader of certificates
//! is `x509-parser`, and only the order of the bytes is written here. It reads no files and calls no servers.
//!
//! - [`Certificate`]: the public key of a controller, or the certificate in a TLS Secret, and until when it is valid.
//! - [`seal`]: one value for one controller.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

mod certificate;
mod hybrid;

pub use certificate::{Certificate, CertificateError};
pub use hybrid::{SealError, SealingKey, seal, session_key};
