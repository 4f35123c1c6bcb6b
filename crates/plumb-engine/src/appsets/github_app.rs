//! The statement with which a GitHub App says who it is: a JSON Web Token, signed with its key.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use plumb_appset::scm::{GithubApp, SetSecret};
use serde_json::json;

/// GitHub accepts at most ten minutes, and clocks differ.
const VALID_SECONDS: i64 = 9 * 60;
const CLOCKS_DIFFER: i64 = 60;
const TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";

/// The App that a Secret of type `repo-creds` describes. The message never quotes the key.
pub(super) fn github_app(name: &str, secret: &SetSecret, now: Timestamp) -> Result<GithubApp, String> {
    if secret.labels.get(TYPE_LABEL).map(String::as_str) != Some("repo-creds") {
        return Err(format!("secret {name} must have the label {TYPE_LABEL}=repo-creds"));
    }
    let text = |key: &str| secret.data.get(key).map(|text| text.trim()).filter(|text| !text.is_empty());
    let needed = |key: &str| text(key).ok_or_else(|| format!("secret {name} has no key {key}"));
    let number = |key: &str| match text(key) {
        None => Ok(None),
        Some(text) => {
            text.parse::<u64>().map(Some).map_err(|_| format!("secret {name}: {key} is not a number"))
        }
    };
    needed("githubAppID")?;
    let id = number("githubAppID")?.unwrap_or_default();
    let key = key_pair(needed("githubAppPrivateKey")?)
        .ok_or_else(|| format!("secret {name}: githubAppPrivateKey is not an RSA key in PEM"))?;
    let statement =
        statement(id, &key, now).ok_or_else(|| format!("cannot sign with the key of secret {name}"))?;
    Ok(GithubApp {
        statement,
        installation_id: number("githubAppInstallationID")?.filter(|id| *id > 0),
        enterprise_base_url: text("githubAppEnterpriseBaseUrl").unwrap_or_default().to_owned(),
    })
}

fn key_pair(pem: &str) -> Option<KeyPair> {
    let body: String = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).ok()?;
    // GitHub writes the older form, `openssl genpkey` the newer.
    KeyPair::from_der(&der).or_else(|_| KeyPair::from_pkcs8(&der)).ok()
}

fn statement(id: u64, key: &KeyPair, now: Timestamp) -> Option<String> {
    let now = now.as_second();
    let head = json!({"alg": "RS256", "typ": "JWT"});
    let claims = json!({"iat": now - CLOCKS_DIFFER, "exp": now + VALID_SECONDS, "iss": id.to_string()});
    let encoded = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&head), encoded(&claims));
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::AsDer as _;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    fn secret(key: &str, entries: &[(&str, &str)]) -> SetSecret {
        let mut secret = SetSecret::default();
        secret.labels.insert(TYPE_LABEL.to_owned(), "repo-creds".to_owned());
        secret.data.insert("githubAppPrivateKey".to_owned(), key.to_owned());
        secret.data.extend(entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())));
        secret
    }

    #[test]
    fn the_statement_is_signed_with_the_key_of_the_app() {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der = pair.as_der().unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            STANDARD.encode(der.as_ref())
        );
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let entries = [("githubAppID", "7"), ("githubAppInstallationID", "9")];
        let app = github_app("creds", &secret(&pem, &entries), now).unwrap();
        assert_eq!(app.installation_id, Some(9));
        let (signed, signature) = app.statement.rsplit_once('.').unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((claims["iss"].as_str(), claims["iat"].as_i64()), (Some("7"), Some(now.as_second() - 60)));
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }

    #[test]
    fn a_secret_that_is_none_is_told_without_its_content() {
        let now = Timestamp::UNIX_EPOCH;
        let cases = [
            (secret("hunter2", &[("githubAppID", "7")]), "githubAppPrivateKey is not an RSA key in PEM"),
            (secret("hunter2", &[("githubAppID", "x")]), "githubAppID is not a number"),
            (secret("hunter2", &[]), "has no key githubAppID"),
            (SetSecret::default(), "must have the label"),
        ];
        for (secret, expected) in cases {
            let error = github_app("creds", &secret, now).err().unwrap();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
