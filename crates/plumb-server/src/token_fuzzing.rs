//! What the fuzz target for tokens tries.

use serde_json::{Map, Value};

use crate::{jwt, oidc};

/// Tries a token that nobody signed, with the code for both kinds of tokens. For fuzzing: it is always false.
#[doc(hidden)]
pub fn accepts_token(token: &str) -> bool {
    oidc::accepts(token) || jwt::verify(b"a key that nobody knows", token, 0).is_ok()
}

/// Tries claims behind a valid signature: a token of plumb's own may have been signed by another version, or by Argo CD. For
/// fuzzing: the error says which rule was broken.
#[doc(hidden)]
pub fn check_signed_claims(claims: &str, now: i64) -> Result<(), String> {
    let Ok(claims) = serde_json::from_str::<Map<String, Value>>(claims) else { return Ok(()) };
    let key = b"a key that the sender knows";
    let token = jwt::sign(key, &claims);
    if jwt::verify(b"another key", &token, now).is_ok() {
        return Err("a token with another key is accepted".to_owned());
    }
    let Ok(accepted) = jwt::verify(key, &token, now) else { return Ok(()) };
    if accepted.get("iss").and_then(Value::as_str) != Some(jwt::ISSUER) {
        return Err("a token of another issuer is accepted".to_owned());
    }
    let time = |name: &str| accepted.get(name).filter(|value| !value.is_null()).map(Value::as_f64);
    let is_over = |until: f64| until + 60.0 < seconds(now);
    match (time("exp"), time("nbf")) {
        (Some(None), _) | (_, Some(None)) => Err("a time that is no number is accepted".to_owned()),
        (Some(Some(until)), _) if is_over(until) => Err("an expired token is accepted".to_owned()),
        (_, Some(Some(from))) if from - 60.0 > seconds(now) => Err("an early token is accepted".to_owned()),
        _ => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a minute more or less does not matter to this check")]
fn seconds(now: i64) -> f64 {
    now as f64
}

#[cfg(test)]
mod tests {
    use super::check_signed_claims;

    #[test]
    fn claims_behind_a_valid_signature_are_checked() {
        let times = [
            "null",
            "0",
            "-1",
            "1000000",
            "1000600",
            "99999999999999999999",
            "1e300",
            "-1e300",
            "\"1\"",
            "true",
            "[]",
        ];
        for issuer in ["\"argocd\"", "\"other\"", "null", "[\"argocd\"]"] {
            for exp in times {
                for nbf in times {
                    let claims =
                        format!("{{\"iss\": {issuer}, \"iat\": 999999, \"exp\": {exp}, \"nbf\": {nbf}}}");
                    assert_eq!(check_signed_claims(&claims, 1_000_000), Ok(()), "{claims}");
                }
            }
        }
    }
}
