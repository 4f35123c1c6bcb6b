//! ID tokens: JWT that the identity provider signs.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Longest token that is read.
const LONGEST: usize = 64 * 1024;
/// By how much the clocks of provider and plumb may differ, in seconds.
const SKEW: i64 = 30;
/// Most keys of a provider.
const MOST_KEYS: usize = 100;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IdTokenError {
    #[error("token is malformed")]
    Malformed,
    #[error("unexpected signing method")]
    Algorithm,
    /// The key may be new: the keys of the provider are to be read again.
    #[error("signature is invalid")]
    Signature,
    #[error("token is expired")]
    Expired,
    #[error("token is not valid yet")]
    Early,
    #[error("token has an unknown issuer")]
    Issuer,
    #[error("token is for another audience")]
    Audience,
    #[error("token belongs to another login")]
    Nonce,
}

/// What a token must be.
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) audiences: &'e [String],
    /// That of the login, where the token comes from one.
    pub(super) nonce: Option<&'e str>,
    pub(super) now: i64,
}

/// A public key of the provider.
#[derive(Clone, Debug)]
pub(super) struct Key {
    id: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of a JWK set that sign. Symmetric keys and unknown ones are passed over.
pub(super) fn keys(set: &Value) -> Vec<Key> {
    let keys = set["keys"].as_array().into_iter().flatten().take(MOST_KEYS);
    keys.filter_map(|key| {
        let text = |name: &str| key[name].as_str().unwrap_or_default();
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name).trim_end_matches('=')).ok();
        if !["", "sig"].contains(&text("use")) {
            return None;
        }
        // An uncompressed point.
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [vec![4], x, y].concat())
        };
        let kind = match (text("kty"), text("crv")) {
            ("RSA", _) => Kind::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", "P-256") => Kind::P256(point(32)?),
            ("EC", "P-384") => Kind::P384(point(48)?),
            ("OKP", "Ed25519") => Kind::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some(Key { id: text("kid").to_owned(), kind })
    })
    .collect()
}

/// The claims of a token that is not checked, to tell whose it is. They must not be used for anything else.
pub(crate) fn unchecked_issuer(token: &str) -> Option<String> {
    let body = URL_SAFE_NO_PAD.decode(token.get(..LONGEST.min(token.len()))?.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&body).ok()?;
    claims["iss"].as_str().map(str::to_owned)
}

/// The claims of a token. The key decides which algorithms may be used, whatever the token says.
pub(super) fn verify(
    keys: &[Key],
    token: &str,
    expected: &Expected<'_>,
) -> Result<Map<String, Value>, IdTokenError> {
    if token.len() > LONGEST {
        return Err(IdTokenError::Malformed);
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(tag), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(IdTokenError::Malformed);
    };
    let object = |text: &str| -> Result<Map<String, Value>, IdTokenError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| IdTokenError::Malformed)?;
        serde_json::from_slice(&bytes).map_err(|_| IdTokenError::Malformed)
    };
    let header = object(head)?;
    let text = |name: &str| header.get(name).and_then(Value::as_str).unwrap_or_default();
    let (algorithm, id) = (text("alg"), text("kid"));
    let known = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    // Extensions that must be understood are not; and a symmetric algorithm would make a public key a secret one.
    if !known.contains(&algorithm) || header.contains_key("crit") {
        return Err(IdTokenError::Algorithm);
    }
    let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| IdTokenError::Malformed)?;
    let signed = token.get(..head.len() + 1 + body.len()).ok_or(IdTokenError::Malformed)?;
    let mut named = keys.iter().filter(|key| id.is_empty() || key.id.is_empty() || key.id == id);
    if !named.any(|key| is_signed_by(key, algorithm, signed.as_bytes(), &tag)) {
        return Err(IdTokenError::Signature);
    }
    let claims = object(body)?;
    check(&claims, expected)?;
    Ok(claims)
}

fn is_signed_by(key: &Key, algorithm: &str, message: &[u8], tag: &[u8]) -> bool {
    let rsa = |parameters: &'static RsaParameters, n: &[u8], e: &[u8]| {
        RsaPublicKeyComponents { n, e }.verify(parameters, message, tag).is_ok()
    };
    let other = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
        UnparsedPublicKey::new(algorithm, key).verify(message, tag).is_ok()
    };
    match (&key.kind, algorithm) {
        (Kind::Rsa { n, e }, "RS256") => rsa(&RSA_PKCS1_2048_8192_SHA256, n, e),
        (Kind::Rsa { n, e }, "RS384") => rsa(&RSA_PKCS1_2048_8192_SHA384, n, e),
        (Kind::Rsa { n, e }, "RS512") => rsa(&RSA_PKCS1_2048_8192_SHA512, n, e),
        (Kind::Rsa { n, e }, "PS256") => rsa(&RSA_PSS_2048_8192_SHA256, n, e),
        (Kind::Rsa { n, e }, "PS384") => rsa(&RSA_PSS_2048_8192_SHA384, n, e),
        (Kind::Rsa { n, e }, "PS512") => rsa(&RSA_PSS_2048_8192_SHA512, n, e),
        (Kind::P256(point), "ES256") => other(&ECDSA_P256_SHA256_FIXED, point),
        (Kind::P384(point), "ES384") => other(&ECDSA_P384_SHA384_FIXED, point),
        (Kind::Ed25519(point), "EdDSA") => other(&ED25519, point),
        _ => false,
    }
}

fn check(claims: &Map<String, Value>, expected: &Expected<'_>) -> Result<(), IdTokenError> {
    let time =
        |name: &str| claims.get(name).and_then(|value| value.as_i64().or_else(|| whole(value.as_f64()?)));
    if claims.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
        return Err(IdTokenError::Issuer);
    }
    let until = time("exp").ok_or(IdTokenError::Malformed)?;
    if expected.now >= until.saturating_add(SKEW) {
        return Err(IdTokenError::Expired);
    }
    let is_early = |from: Option<i64>| from.is_some_and(|from| from > expected.now.saturating_add(SKEW));
    if is_early(time("nbf")) || is_early(time("iat")) {
        return Err(IdTokenError::Early);
    }
    let is_allowed = |audience: &Value| expected.audiences.iter().any(|allowed| audience == allowed.as_str());
    let is_for_us = match claims.get("aud") {
        Some(Value::Array(list)) => list.iter().any(is_allowed),
        Some(one) => is_allowed(one),
        None => false,
    };
    if !is_for_us {
        return Err(IdTokenError::Audience);
    }
    if claims.get("sub").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(IdTokenError::Malformed);
    }
    match expected.nonce {
        Some(nonce) if claims.get("nonce").and_then(Value::as_str) != Some(nonce) => Err(IdTokenError::Nonce),
        _ => Ok(()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a time in seconds; JSON may write it as a float")]
fn whole(number: f64) -> Option<i64> {
    number.is_finite().then_some(number as i64)
}

/// Tries a token that nobody signed with a key that nobody else knows. For fuzzing; always false.
pub(crate) fn accepts(token: &str) -> bool {
    let key = Key { id: String::new(), kind: Kind::Ed25519(vec![9; 32]) };
    let audiences = [String::new()];
    let expected = Expected { issuer: "", audiences: &audiences, nonce: None, now: 0 };
    unchecked_issuer(token).is_some_and(|issuer| issuer.len() > LONGEST)
        || verify(&[key], token, &expected).is_ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn pair() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
    }

    fn set() -> Vec<Key> {
        let x = URL_SAFE_NO_PAD.encode(pair().public_key().as_ref());
        keys(&json!({"keys": [
            {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": x},
        ]}))
    }

    fn token(head: &Value, change: &Value) -> String {
        let mut claims = json!({"iss": "https://id", "sub": "ann", "aud": "argo", "exp": NOW + 100, "iat": NOW, "nonce": "n"});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(head.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let tag = pair().sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    fn refused(head: &Value, change: &Value) -> Option<IdTokenError> {
        let audiences = ["argo".to_owned(), "cli".to_owned()];
        let expected = Expected { issuer: "https://id", audiences: &audiences, nonce: Some("n"), now: NOW };
        verify(&set(), &token(head, change), &expected).err()
    }

    /// The audience is always checked (CVE-2023-22482).
    #[test]
    fn only_tokens_for_us_and_now_are_accepted() {
        let head = json!({"alg": "EdDSA", "kid": "one"});
        let check = |change: Value, expected: Option<IdTokenError>| {
            assert_eq!(refused(&head, &change), expected, "{change}");
        };
        check(json!({}), None);
        check(json!({"aud": ["other", "cli"]}), None);
        check(json!({"aud": ["other"]}), Some(IdTokenError::Audience));
        check(json!({"aud": null}), Some(IdTokenError::Audience));
        check(json!({"iss": "https://other"}), Some(IdTokenError::Issuer));
        check(json!({"iss": "argocd"}), Some(IdTokenError::Issuer));
        check(json!({"exp": NOW - 10}), None);
        check(json!({"exp": NOW - 31}), Some(IdTokenError::Expired));
        check(json!({"exp": null}), Some(IdTokenError::Malformed));
        check(json!({"nbf": NOW + 29}), None);
        check(json!({"nbf": NOW + 60}), Some(IdTokenError::Early));
        check(json!({"iat": NOW + 60}), Some(IdTokenError::Early));
        check(json!({"nonce": "other"}), Some(IdTokenError::Nonce));
        check(json!({"sub": ""}), Some(IdTokenError::Malformed));
    }

    #[test]
    fn the_key_decides_the_algorithm() {
        for (head, expected) in [
            (json!({"alg": "none"}), IdTokenError::Algorithm),
            (json!({"alg": "HS256", "kid": "one"}), IdTokenError::Algorithm),
            (json!({"alg": "RS256", "kid": "one"}), IdTokenError::Signature),
            (json!({"alg": "EdDSA", "kid": "two"}), IdTokenError::Signature),
            (json!({"alg": "EdDSA", "kid": "shared"}), IdTokenError::Signature),
            (json!({"alg": "EdDSA", "kid": "one", "crit": ["x"]}), IdTokenError::Algorithm),
        ] {
            assert_eq!(refused(&head, &json!({})), Some(expected), "{head}");
        }
        let changed = token(&json!({"alg": "EdDSA"}), &json!({})).replacen("eyJ", "eyK", 2);
        let audiences = ["argo".to_owned()];
        let expected = Expected { issuer: "https://id", audiences: &audiences, nonce: None, now: NOW };
        assert!(verify(&set(), &changed, &expected).is_err());
        for text in ["", "a.b", "a.b.c.d", "a.b.c", "..", "é.é.é"] {
            assert!(verify(&set(), text, &expected).is_err(), "{text}");
        }
    }
}
