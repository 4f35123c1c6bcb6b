//! `oidc.config` of `argocd-cm`.

use std::collections::BTreeMap;

use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;

/// The scopes that are asked for unless the settings say otherwise.
const SCOPES: [&str; 4] = ["openid", "profile", "email", "groups"];

/// The settings of the identity provider. It has no `Debug`, because it holds a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OidcConfig {
    pub(crate) name: String,
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(super) client_secret: String,
    /// The client of command lines; empty if it is the same.
    pub(crate) cli_client_id: String,
    pub(crate) scopes: Vec<String>,
    pub(super) audiences: Vec<String>,
    pub(crate) logout_url: String,
    /// Certificates in PEM that are trusted besides the usual ones.
    pub(super) root_ca: String,
    /// True if any certificate is accepted. Only the setting of its own turns this on.
    pub(super) insecure: bool,
    /// Where groups are asked for, if not in the token.
    pub(super) user_info: Option<String>,
    /// `requestedIDTokenClaims` as written.
    pub(crate) claims: Value,
}

impl OidcConfig {
    /// Reads the settings; `None` if there is no provider. `secrets` are the values that `$key` (of `argocd-secret`)
    /// and `$secret:key` stand for.
    pub(super) fn read(
        config: &BTreeMap<String, String>,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, String> {
        let Some(text) = config.get("oidc.config").filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        // The error of the parser could quote the text, which may hold a secret.
        let documents =
            parse_documents(text, &Limits::default()).map_err(|_| "oidc.config is not YAML".to_owned())?;
        let value = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
        let field = |name: &str| {
            let written = value[name].as_str().unwrap_or_default();
            resolved(written, secrets)
        };
        let list = |name: &str| -> Vec<String> {
            let items = value[name].as_array().into_iter().flatten();
            items.filter_map(|item| item.as_str().map(|item| resolved(item, secrets))).collect()
        };
        let (issuer, client_id, cli_client_id) = (field("issuer"), field("clientID"), field("cliClientID"));
        if issuer.is_empty() || client_id.is_empty() {
            return Err("oidc.config has no issuer or no clientID".to_owned());
        }
        let mut audiences = list("allowedAudiences");
        if audiences.is_empty() {
            audiences =
                [&client_id, &cli_client_id].into_iter().filter(|id| !id.is_empty()).cloned().collect();
        }
        let scopes = match list("requestedScopes") {
            scopes if scopes.is_empty() => SCOPES.map(str::to_owned).to_vec(),
            scopes => scopes,
        };
        let wants_groups = value["enableUserInfoGroups"] == true;
        let base = field("userInfoBaseURL");
        let base = if base.is_empty() { issuer.trim_end_matches('/').to_owned() } else { base };
        Ok(Some(Self {
            name: field("name"),
            client_secret: field("clientSecret"),
            logout_url: field("logoutURL"),
            root_ca: field("rootCA"),
            insecure: config.get("oidc.tls.insecure.skip.verify").is_some_and(|value| value == "true"),
            user_info: wants_groups.then(|| format!("{base}{}", field("userInfoPath"))),
            claims: value["requestedIDTokenClaims"].clone(),
            issuer,
            client_id,
            cli_client_id,
            scopes,
            audiences,
        }))
    }
}

/// A value, or what it names in a Secret. A name that does not exist stays as text, as in Argo CD.
fn resolved(text: &str, secrets: &BTreeMap<String, String>) -> String {
    let named = text.trim().strip_prefix('$').and_then(|name| secrets.get(name));
    named.map_or_else(|| text.to_owned(), |value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_looked_up_and_defaults_count() {
        let config = BTreeMap::from([(
            "oidc.config".to_owned(),
            "name: Okta\nissuer: https://id.example.com\nclientID: argo\nclientSecret: $oidc.secret\ncliClientID: cli\n"
                .to_owned(),
        )]);
        let secrets = BTreeMap::from([("oidc.secret".to_owned(), "s3cr3t\n".to_owned())]);
        let read = OidcConfig::read(&config, &secrets).unwrap().unwrap();
        assert_eq!(read.client_secret, "s3cr3t");
        assert_eq!(read.audiences, ["argo", "cli"]);
        assert_eq!(read.scopes, SCOPES);
        assert!(read.user_info.is_none() && !read.insecure);
        assert!(OidcConfig::read(&BTreeMap::new(), &secrets).unwrap().is_none());
        let other = config["oidc.config"].replace("$oidc.secret", "$sso:secret");
        let config = BTreeMap::from([("oidc.config".to_owned(), other)]);
        let secrets = BTreeMap::from([("sso:secret".to_owned(), "other\n".to_owned())]);
        assert_eq!(OidcConfig::read(&config, &secrets).unwrap().unwrap().client_secret, "other");
        let broken = BTreeMap::from([("oidc.config".to_owned(), "name: x".to_owned())]);
        assert!(OidcConfig::read(&broken, &secrets).is_err());
    }

    #[test]
    fn only_the_setting_of_its_own_accepts_any_certificate() {
        let text =
            "issuer: https://id.example.com\nclientID: argo\ninsecure: true\ninsecureSkipVerify: true\n";
        let mut config = BTreeMap::from([("oidc.config".to_owned(), text.to_owned())]);
        let insecure = |config: &BTreeMap<String, String>| {
            OidcConfig::read(config, &BTreeMap::new()).unwrap().unwrap().insecure
        };
        assert!(!insecure(&config));
        config.insert("oidc.tls.insecure.skip.verify".to_owned(), "yes".to_owned());
        assert!(!insecure(&config));
        config.insert("oidc.tls.insecure.skip.verify".to_owned(), "true".to_owned());
        assert!(insecure(&config));
    }
}
