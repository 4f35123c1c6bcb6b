//! A certificate: whose it is, until when it is valid, and the key in it.

use jiff::Timestamp;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Largest text that is read as certificates. A chain has a few kilobytes.
const MAX_BYTES: usize = 1 << 20;
const LABEL: &str = "CERTIFICATE";

/// The first certificate of a PEM text.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    not_before: Timestamp,
    not_after: Timestamp,
    subject: String,
    /// The public key as DER (`SubjectPublicKeyInfo`).
    public_key: Vec<u8>,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

/// Why a text has no certificate. No part of the text is in it: it may be a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// No PEM block at all.
    #[error("it has no PEM block; a certificate begins with `-----BEGIN CERTIFICATE-----`")]
    NoPem,
    /// PEM blocks, but none of a certificate.
    #[error("it has no certificate, only other PEM blocks")]
    OtherBlocks,
    /// A private key.
    #[error("it has a private key, not a certificate; keep the key out of files that others can read")]
    PrivateKey,
    /// The block cannot be read.
    #[error("its first certificate cannot be read")]
    Unreadable,
    /// Far larger than any certificate.
    #[error("it is larger than {MAX_BYTES} bytes, which no certificate is")]
    TooLarge,
}

impl Certificate {
    /// Reads the first certificate of a PEM text.
    pub fn from_pem(text: &[u8]) -> Result<Self, CertificateError> {
        if text.len() > MAX_BYTES {
            return Err(CertificateError::TooLarge);
        }
        let mut seen = None;
        for block in Pem::iter_from_buffer(text) {
            let Ok(block) = block else {
                return Err(seen.unwrap_or(CertificateError::Unreadable));
            };
            if block.label == LABEL {
                return Self::from_der(&block.contents);
            }
            let is_key = block.label.ends_with("PRIVATE KEY");
            seen = Some(if is_key { CertificateError::PrivateKey } else { CertificateError::OtherBlocks });
        }
        Err(seen.unwrap_or(CertificateError::NoPem))
    }

    fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, read) = X509Certificate::from_der(der).map_err(|_| CertificateError::Unreadable)?;
        if !rest.is_empty() {
            return Err(CertificateError::Unreadable);
        }
        let at = |seconds: i64| Timestamp::from_second(seconds).map_err(|_| CertificateError::Unreadable);
        Ok(Self {
            not_before: at(read.validity().not_before.timestamp())?,
            not_after: at(read.validity().not_after.timestamp())?,
            subject: read.subject().to_string(),
            public_key: read.public_key().raw.to_vec(),
        })
    }

    /// From when it is valid.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// Until when it is valid.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whose it is, such as `CN=shop.example.com`. Others wrote it.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    pub(crate) fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn the_first_certificate_of_a_text_is_read() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["shop.example.com".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 2);
        params.not_after = rcgen::date_time_ymd(2027, 3, 4);
        let certificate = params.self_signed(&key).unwrap();
        let text = format!("words before\n{}{}", certificate.pem(), key.serialize_pem());
        let read = Certificate::from_pem(text.as_bytes()).unwrap();
        assert_eq!(read.not_before(), "2026-01-02T00:00:00Z".parse().unwrap());
        assert_eq!(read.not_after(), "2027-03-04T00:00:00Z".parse().unwrap());
        assert!(!format!("{read:?}").contains("key"));

        let alone = Certificate::from_pem(key.serialize_pem().as_bytes());
        assert_eq!(alone, Err(CertificateError::PrivateKey));
        let damaged = certificate.pem().replace("MII", "AAA");
        assert_eq!(Certificate::from_pem(damaged.as_bytes()), Err(CertificateError::Unreadable));
    }

    #[test]
    fn a_text_without_a_certificate_says_what_it_is() {
        for (text, error) in [
            ("", CertificateError::NoPem),
            ("<html>404</html>", CertificateError::NoPem),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", CertificateError::OtherBlocks),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", CertificateError::Unreadable),
            ("-----BEGIN CERTIFICATE-----\nAAAA", CertificateError::Unreadable),
        ] {
            assert_eq!(Certificate::from_pem(text.as_bytes()), Err(error), "{text}");
        }
        assert_eq!(Certificate::from_pem(&vec![b'-'; MAX_BYTES + 1]), Err(CertificateError::TooLarge));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Certificate::from_pem(&bytes);
            let _ = Certificate::from_der(&bytes);
            let mut text = b"-----BEGIN CERTIFICATE-----\n".to_vec();
            text.extend_from_slice(&bytes);
            text.extend_from_slice(b"\n-----END CERTIFICATE-----\n");
            let _ = Certificate::from_pem(&text);
        }
    }
}
