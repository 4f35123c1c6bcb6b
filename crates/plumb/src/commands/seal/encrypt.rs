//! From values to encrypted texts.

use std::collections::BTreeMap;

use plumb_core::secrets::{PlainSecret, SealingScope};
use plumb_seal::{SealingKey, seal, session_key};

use crate::error::CommandError;

/// All values of a Secret, encrypted for its scope.
pub(super) fn encrypted(
    key: &SealingKey,
    secret: &PlainSecret,
) -> Result<BTreeMap<String, String>, CommandError> {
    let label = secret.label();
    let mut sealed = BTreeMap::new();
    for (name, value) in secret.values.iter() {
        let failed = |error| CommandError::because(format!("seal the key {name}"), error);
        let text = seal(key, session_key().map_err(failed)?, value, label.as_bytes()).map_err(failed)?;
        sealed.insert(name.to_owned(), text);
    }
    Ok(sealed)
}

/// Does the Secret have what its scope binds it to?
pub(super) fn check_identity(secret: &PlainSecret) -> Result<(), CommandError> {
    let scope = secret.scope;
    if secret.namespace.is_none() && scope != SealingScope::ClusterWide {
        let what =
            if secret.name.is_empty() { "a Secret".to_owned() } else { format!("Secret {}", secret.name) };
        return Err(CommandError::usage(format!("cannot seal {what}: it names no namespace"))
            .hint("pass --namespace: a value can only be opened in the namespace that it was sealed for")
            .hint("--scope cluster-wide seals it for all namespaces"));
    }
    if secret.name.is_empty() && scope == SealingScope::Strict {
        return Err(CommandError::usage("cannot seal a Secret without a name")
            .hint("pass --name: a value can only be opened under the name that it was sealed for"));
    }
    Ok(())
}
