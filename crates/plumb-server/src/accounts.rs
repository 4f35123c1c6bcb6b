//! Local accounts: `argocd-cm` names them, `argocd-secret` has their passwords and tokens.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The account that always exists.
const ADMIN: &str = "admin";

/// One token of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiToken {
    pub(crate) id: String,
    pub(crate) issued_at: i64,
    pub(crate) expires_at: i64,
}

/// One local account. It has no `Debug`, because it holds the hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) is_enabled: bool,
    pub(crate) can_login: bool,
    pub(crate) can_have_tokens: bool,
    pub(crate) password_hash: String,
    /// When the password was set, in seconds: older tokens are refused.
    pub(crate) password_changed: Option<i64>,
    pub(crate) tokens: Vec<ApiToken>,
}

impl Account {
    /// The prefix of the account's keys in `argocd-secret`.
    pub(crate) fn secret_prefix(name: &str) -> String {
        if name == ADMIN { ADMIN.to_owned() } else { format!("accounts.{name}") }
    }

    /// As the API shows it, newest token first.
    pub(crate) fn shown(&self) -> Value {
        let mut tokens = self.tokens.clone();
        tokens.sort_by_key(|token| std::cmp::Reverse(token.issued_at));
        let tokens: Vec<Value> = tokens
            .iter()
            .map(|token| json!({"id": token.id, "issuedAt": token.issued_at, "expiresAt": token.expires_at}))
            .collect();
        let words = [(self.can_login, "login"), (self.can_have_tokens, "apiKey")];
        let capabilities: Vec<&str> =
            words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect();
        json!({"name": self.name, "enabled": self.is_enabled, "capabilities": capabilities, "tokens": tokens})
    }
}

/// All local accounts by name. A value that cannot be read disables the account: it must not open it.
pub(crate) fn read(
    config: &BTreeMap<String, String>,
    secret: &BTreeMap<String, String>,
) -> BTreeMap<String, Account> {
    let is_true = |key: &str| config.get(key).is_none_or(|text| text.trim() == "true");
    let mut accounts = BTreeMap::new();
    accounts.insert(ADMIN.to_owned(), account(ADMIN, is_true("admin.enabled"), &["login"], secret));
    for (key, words) in config {
        let Some(name) = key.strip_prefix("accounts.").filter(|name| !name.contains('.') && !name.is_empty())
        else {
            continue;
        };
        let words: Vec<&str> = words.split(',').map(str::trim).collect();
        let is_enabled = is_true(&format!("accounts.{name}.enabled"));
        // `accounts.admin` gives admin more capabilities, and does not replace the rest.
        if name == ADMIN {
            if let Some(admin) = accounts.get_mut(ADMIN) {
                admin.can_have_tokens |= words.contains(&"apiKey");
            }
            continue;
        }
        accounts.insert(name.to_owned(), account(name, is_enabled, &words, secret));
    }
    accounts
}

fn account(name: &str, is_enabled: bool, words: &[&str], secret: &BTreeMap<String, String>) -> Account {
    let prefix = Account::secret_prefix(name);
    let value = |key: &str| secret.get(&format!("{prefix}.{key}")).map(|text| text.trim());
    let changed = value("passwordMtime").and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Account {
        name: name.to_owned(),
        is_enabled,
        can_login: words.contains(&"login"),
        can_have_tokens: words.contains(&"apiKey"),
        password_hash: value("password").unwrap_or_default().to_owned(),
        password_changed: changed.map(jiff::Timestamp::as_second),
        tokens: value("tokens").map(tokens).unwrap_or_default(),
    }
}

fn tokens(text: &str) -> Vec<ApiToken> {
    let list: Value = serde_json::from_str(text).unwrap_or_default();
    let token = |entry: &Value| {
        Some(ApiToken {
            id: entry.get("id")?.as_str()?.to_owned(),
            issued_at: entry.get("iat").and_then(Value::as_i64).unwrap_or_default(),
            expires_at: entry.get("exp").and_then(Value::as_i64).unwrap_or_default(),
        })
    };
    list.as_array().into_iter().flatten().filter_map(token).collect()
}

/// The tokens as `argocd-secret` holds them.
pub(crate) fn tokens_text(tokens: &[ApiToken]) -> String {
    let entries = tokens.iter().map(|token| {
        let mut entry = json!({"id": token.id, "iat": token.issued_at});
        if token.expires_at > 0 {
            entry["exp"] = json!(token.expires_at);
        }
        entry
    });
    Value::Array(entries.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn accounts_of_both_objects() {
        let config = map(&[
            ("accounts.ci", "apiKey"),
            ("accounts.ci.enabled", "false"),
            ("accounts.ann", "apiKey, login, other"),
            ("admin.enabled", "nonsense"),
        ]);
        let secret = map(&[
            ("accounts.ann.password", "$2a$10$x\n"),
            ("accounts.ann.passwordMtime", "1970-01-01T00:01:40Z"),
            ("accounts.ann.tokens", r#"[{"id":"a","iat":1},{"id":"b","iat":2,"exp":3},{"x":1}]"#),
        ]);
        let accounts = read(&config, &secret);
        let names: Vec<&String> = accounts.keys().collect();
        assert_eq!(names, ["admin", "ann", "ci"]);
        assert!(!accounts["admin"].is_enabled, "what cannot be read does not open an account");
        assert!(!accounts["ci"].is_enabled && !accounts["ci"].can_login);
        let ann = &accounts["ann"];
        assert!(ann.can_login && ann.can_have_tokens && ann.is_enabled);
        assert_eq!((ann.password_hash.as_str(), ann.password_changed), ("$2a$10$x", Some(100)));
        assert_eq!(ann.shown()["tokens"][0]["id"], "b");
        assert_eq!(tokens_text(&ann.tokens), r#"[{"iat":1,"id":"a"},{"exp":3,"iat":2,"id":"b"}]"#);
    }
}
