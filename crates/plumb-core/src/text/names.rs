//! Names whose values are secrets.

/// A field, variable, header or flag whose name ends in one of these holds a secret. Without `_` and `-`, in lower case.
pub(super) const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "accesskey",
    "accesskeyid",
    "accountkey",
    "sharedaccesskey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "secretkey",
    "privatekey",
    "clientsecret",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "cookie",
    "session",
    "sessionid",
    "signature",
    "connectionstring",
    "dsn",
];

/// True for the name of a field, variable or parameter that holds a secret: `DB_PASSWORD`, `api-key`, `clientSecret`.
pub fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
    let plain: String = letters.collect();
    // `sig` is the signature in an address of Azure; as an ending it would be part of ordinary words.
    plain == "sig" || ENDINGS.iter().any(|ending| plain.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in
            ["password", "DB_PASSWORD", "api-key", "clientSecret", "X-Amz-Signature", "sig", "AccountKey"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["user", "passwordFile", "replicas", "config", "key", "author", "secretName", "design"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
