//! What a browser keeps during a login: encrypted, so that nobody else can make or read it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::random;

/// How long a login may take, in seconds.
pub(super) const LOGIN_WITHIN: i64 = 300;

/// One login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoginState {
    /// What the provider sends back.
    pub(super) state: String,
    pub(super) nonce: String,
    /// The secret of PKCE.
    pub(super) verifier: String,
    pub(super) return_url: String,
    /// When it ends.
    pub(super) until: i64,
}

fn key(signing_key: &[u8]) -> Option<LessSafeKey> {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"plumb login");
    let mut bytes = [0; 32];
    let info: [&[u8]; 1] = [b"state"];
    salt.extract(signing_key).expand(&info, hkdf::HKDF_SHA256).ok()?.fill(&mut bytes).ok()?;
    UnboundKey::new(&AES_256_GCM, &bytes).ok().map(LessSafeKey::new)
}

impl LoginState {
    pub(super) fn seal(&self, signing_key: &[u8]) -> Option<String> {
        let text = json!({"s": self.state, "n": self.nonce, "v": self.verifier, "r": self.return_url, "u": self.until});
        let nonce = random::bytes::<NONCE_LEN>().ok()?;
        let mut bytes = text.to_string().into_bytes();
        let key = key(signing_key)?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.to_vec(), bytes].concat()))
    }

    /// Reads a cookie. `None` if this server did not make it, or too long ago.
    pub(super) fn open(text: &str, signing_key: &[u8], now: i64) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut rest = rest.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key(signing_key)?.open_in_place(nonce, Aad::empty(), &mut rest).ok()?;
        let value: Value = serde_json::from_slice(opened).ok()?;
        let field = |name: &str| Some(value[name].as_str()?.to_owned());
        let until = value["u"].as_i64()?;
        let (state, nonce, verifier) = (field("s")?, field("n")?, field("v")?);
        (now < until).then_some(Self { state, nonce, verifier, return_url: field("r")?, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_reads_and_makes_it() {
        let state = LoginState {
            state: "s".to_owned(),
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
            return_url: "https://argo/".to_owned(),
            until: 100,
        };
        let sealed = state.seal(b"key").unwrap();
        assert_eq!(LoginState::open(&sealed, b"key", 50), Some(state));
        assert_eq!(LoginState::open(&sealed, b"key", 100), None, "too late");
        assert_eq!(LoginState::open(&sealed, b"other", 50), None);
        let mut changed = sealed.into_bytes();
        changed[20] = if changed[20] == b'A' { b'B' } else { b'A' };
        assert_eq!(LoginState::open(&String::from_utf8(changed).unwrap(), b"key", 50), None);
        assert_eq!(LoginState::open("", b"key", 50), None);
    }
}
