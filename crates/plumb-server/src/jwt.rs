//! Tokens that plumb signs itself: JWT with HMAC and SHA-256.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// Who issues these tokens; the same name as Argo CD uses, so its tokens stay valid.
pub(crate) const ISSUER: &str = "argocd";
/// Longest token that is read.
const LONGEST: usize = 64 * 1024;
/// By how much the clocks of two replicas may differ.
const SKEW: i64 = 5;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("token is malformed")]
    Malformed,
    #[error("unexpected signing method")]
    Algorithm,
    #[error("signature is invalid")]
    Signature,
    #[error("token is expired")]
    Expired,
    #[error("token is not valid yet")]
    Early,
    #[error("token has an unknown issuer")]
    Issuer,
}

/// Signs claims.
pub(crate) fn sign(key: &[u8], claims: &Map<String, Value>) -> String {
    let head = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "typ": "JWT"}).to_string());
    let body = URL_SAFE_NO_PAD.encode(Value::Object(claims.clone()).to_string());
    let signed = format!("{head}.{body}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// The claims of a token of plumb or Argo CD. The algorithm must be the one that the key is for, whatever the token says.
pub(crate) fn verify(key: &[u8], token: &str, now: i64) -> Result<Map<String, Value>, TokenError> {
    if token.len() > LONGEST {
        return Err(TokenError::Malformed);
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(tag), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    let object = |text: &str| -> Result<Map<String, Value>, TokenError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)?;
        serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
    };
    let algorithm = match object(head)?.get("alg").and_then(Value::as_str) {
        Some("HS256") => hmac::HMAC_SHA256,
        Some("HS384") => hmac::HMAC_SHA384,
        Some("HS512") => hmac::HMAC_SHA512,
        _ => return Err(TokenError::Algorithm),
    };
    let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| TokenError::Malformed)?;
    let signed = token.get(..head.len() + 1 + body.len()).ok_or(TokenError::Malformed)?;
    hmac::verify(&hmac::Key::new(algorithm, key), signed.as_bytes(), &tag)
        .map_err(|_| TokenError::Signature)?;
    let claims = object(body)?;
    check_times(&claims, now)?;
    match claims.get("iss").and_then(Value::as_str) {
        Some(ISSUER) => Ok(claims),
        _ => Err(TokenError::Issuer),
    }
}

fn check_times(claims: &Map<String, Value>, now: i64) -> Result<(), TokenError> {
    let time = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a time in seconds; JSON may write it as a float"
        )]
        Some(value) => match value.as_i64().or_else(|| value.as_f64().map(|float| float as i64)) {
            Some(time) => Ok(Some(time)),
            None => Err(TokenError::Malformed),
        },
    };
    if time("exp")?.is_some_and(|until| now >= until) {
        return Err(TokenError::Expired);
    }
    let is_early = |from: Option<i64>| from.is_some_and(|from| from > now + SKEW);
    if is_early(time("nbf")?) || is_early(time("iat")?) {
        return Err(TokenError::Early);
    }
    // Without it, nothing tells whether the password was changed since.
    time("iat")?.map(|_| ()).ok_or(TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"a key of the server";

    fn claims(extra: &Value) -> Map<String, Value> {
        let mut claims = json!({"iss": "argocd", "sub": "admin:login", "iat": 100, "nbf": 100, "exp": 200});
        for (name, value) in extra.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims.as_object().unwrap().clone()
    }

    fn check(extra: &Value, now: i64, expected: Option<TokenError>) {
        assert_eq!(verify(KEY, &sign(KEY, &claims(extra)), now).err(), expected);
    }

    #[test]
    fn times_and_issuer() {
        check(&json!({}), 150, None);
        check(&json!({}), 200, Some(TokenError::Expired));
        check(&json!({}), 90, Some(TokenError::Early));
        check(&json!({"exp": null}), 9_000, None);
        check(&json!({"exp": "soon"}), 150, Some(TokenError::Malformed));
        check(&json!({"iat": null}), 150, Some(TokenError::Malformed));
        check(&json!({"iss": "https://other"}), 150, Some(TokenError::Issuer));
    }

    #[test]
    fn the_algorithm_cannot_be_chosen_by_the_sender() {
        let body = URL_SAFE_NO_PAD.encode(Value::Object(claims(&json!({}))).to_string());
        for head in [json!({"alg": "none"}), json!({"alg": "RS256"}), json!({})] {
            let token = format!("{}.{body}.", URL_SAFE_NO_PAD.encode(head.to_string()));
            assert_eq!(verify(KEY, &token, 150), Err(TokenError::Algorithm), "{head}");
        }
    }

    #[test]
    fn a_changed_token_is_refused() {
        let token = sign(KEY, &claims(&json!({})));
        assert_eq!(verify(b"another key", &token, 150), Err(TokenError::Signature));
        let (signed, tag) = token.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(Value::Object(claims(&json!({"sub": "root:login"}))).to_string());
        assert_eq!(verify(KEY, &format!("{head}.{other}.{tag}"), 150), Err(TokenError::Signature));
        for broken in ["", "a", "a.b", "a.b.c", "a.b.c.d", &format!("{token}.x")] {
            assert!(verify(KEY, broken, 150).is_err(), "{broken}");
        }
    }
}
