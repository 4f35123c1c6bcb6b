//! One value for one controller.
//!
//! The Sealed Secrets controller reads: two bytes with the length of what follows, a session key encrypted with RSA-OAEP
//! (SHA-256, the scope as its label), and the value encrypted with that session key (AES-256-GCM). The nonce is zero: a
//! session key is used once. All of it is base64.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PublicEncryptingKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::certificate::Certificate;

const SESSION_KEY_BYTES: usize = 32;

/// Why a value cannot be sealed. No value is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The certificate is too old.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// The certificate is too new.
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
    /// The certificate is for something else.
    #[error("the key of the certificate is not an RSA key of 2048 to 8192 bits, which the controller needs")]
    NotRsa,
    /// The library refused.
    #[error("the cryptographic library refused to encrypt")]
    Refused,
}

/// The public key of a controller.
pub struct SealingKey {
    key: OaepPublicEncryptingKey,
}

impl SealingKey {
    /// The key of a certificate that is valid now.
    pub fn of(certificate: &Certificate, now: Timestamp) -> Result<Self, SealError> {
        if now > certificate.not_after() {
            return Err(SealError::Expired(certificate.not_after()));
        }
        if now < certificate.not_before() {
            return Err(SealError::NotYetValid(certificate.not_before()));
        }
        let key = PublicEncryptingKey::from_der(certificate.public_key()).map_err(|_| SealError::NotRsa)?;
        Ok(Self { key: OaepPublicEncryptingKey::new(key).map_err(|_| SealError::NotRsa)? })
    }
}

/// A new session key. Use each for one value.
pub fn session_key() -> Result<Zeroizing<[u8; SESSION_KEY_BYTES]>, SealError> {
    let mut key = Zeroizing::new([0; SESSION_KEY_BYTES]);
    SystemRandom::new().fill(key.as_mut()).map_err(|_| SealError::Refused)?;
    Ok(key)
}

/// Encrypts a value. `label` is what the scope names; the controller needs the same to decrypt it. The session key is
/// taken: with a second value it would have no secrecy left.
#[expect(clippy::needless_pass_by_value, reason = "a session key is used once")]
pub fn seal(
    key: &SealingKey,
    session_key: Zeroizing<[u8; SESSION_KEY_BYTES]>,
    value: &[u8],
    label: &[u8],
) -> Result<String, SealError> {
    let mut wrapped = vec![0; key.key.ciphertext_size()];
    let wrapped = key
        .key
        .encrypt(&OAEP_SHA256_MGF1SHA256, session_key.as_ref(), &mut wrapped, Some(label))
        .map_err(|_| SealError::Refused)?;
    let cipher = UnboundKey::new(&AES_256_GCM, session_key.as_ref()).map_err(|_| SealError::Refused)?;
    // Encrypted in place. What a growing buffer would leave behind is avoided by reserving the tag.
    let mut body = Zeroizing::new(Vec::with_capacity(value.len() + AES_256_GCM.tag_len()));
    body.extend_from_slice(value);
    LessSafeKey::new(cipher)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut *body)
        .map_err(|_| SealError::Refused)?;
    let length = u16::try_from(wrapped.len()).map_err(|_| SealError::NotRsa)?;
    let parts: [&[u8]; 3] = [&length.to_be_bytes(), wrapped, &body];
    Ok(STANDARD.encode(parts.concat()))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rsa::{OaepPrivateDecryptingKey, PrivateDecryptingKey};
    use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn certificate(key: &KeyPair) -> Certificate {
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        Certificate::from_pem(params.self_signed(key).unwrap().pem().as_bytes()).unwrap()
    }

    /// The controller's side, written from the description of the format.
    fn open(private: &OaepPrivateDecryptingKey, sealed: &str, label: &[u8]) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (wrapped, body) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let mut buffer = vec![0; private.min_output_size()];
        let session = private.decrypt(&OAEP_SHA256_MGF1SHA256, wrapped, &mut buffer, Some(label)).ok()?;
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, session).ok()?);
        let mut body = body.to_vec();
        let opened = cipher.open_in_place(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut body);
        opened.ok().map(|plain| plain.to_vec())
    }

    #[test]
    fn only_the_label_of_the_seal_opens_it() {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        let private = PrivateDecryptingKey::from_pkcs8(&pair.serialize_der()).unwrap();
        let private = OaepPrivateDecryptingKey::new(private).unwrap();
        let key = SealingKey::of(&certificate(&pair), at("2026-06-01T00:00:00Z")).unwrap();
        let long = vec![7; 70_000];
        for (value, label) in
            [(&b"hunter2"[..], &b"shop/db"[..]), (b"", b"shop"), (&[0, 255, 10], b""), (&long, b"a/b")]
        {
            let sealed = seal(&key, session_key().unwrap(), value, label).unwrap();
            assert_eq!(open(&private, &sealed, label).as_deref(), Some(value));
            assert_eq!(open(&private, &sealed, b"other/db"), None);
            let again = seal(&key, session_key().unwrap(), value, label).unwrap();
            assert_ne!(sealed, again, "the same value twice must not look the same");
        }
        // 2 bytes, 256 of RSA, the value, 16 of the tag.
        let sealed = seal(&key, session_key().unwrap(), b"12345", b"").unwrap();
        let bytes = STANDARD.decode(sealed).unwrap();
        assert_eq!((bytes.len(), &bytes[..2]), (2 + 256 + 5 + 16, &[1, 0][..]));
    }

    #[test]
    fn a_certificate_that_cannot_be_used_is_refused() {
        let pair = KeyPair::generate().unwrap();
        let of = |time: &str| SealingKey::of(&certificate(&pair), at(time)).err();
        let after = at("2027-01-01T00:00:00Z");
        assert_eq!(of("2027-01-01T00:00:01Z"), Some(SealError::Expired(after)));
        assert_eq!(of("2025-12-31T23:59:59Z"), Some(SealError::NotYetValid(at("2026-01-01T00:00:00Z"))));
        // An elliptic curve.
        assert_eq!(of("2026-06-01T00:00:00Z"), Some(SealError::NotRsa));
    }
}
