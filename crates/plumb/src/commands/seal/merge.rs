//! `plumb seal --merge-into`: values into a file that has a `SealedSecret` already.

use std::path::Path;

use plumb_core::secrets::{Merged, PlainSecret, merge};
use plumb_seal::SealingKey;

use super::args::Args;
use super::encrypt::encrypted;
use super::files::Change;
use crate::error::CommandError;

/// A file with the `SealedSecret` that values are put into.
pub(super) struct Target<'args> {
    path: &'args Path,
    content: Vec<u8>,
    pub(super) sealed: Merged,
}

impl<'args> Target<'args> {
    pub(super) fn read(path: &'args Path, name: Option<&str>) -> Result<Self, CommandError> {
        let content = std::fs::read(path)
            .map_err(|error| CommandError::because(format!("read {}", path.display()), error))?;
        let sealed = Merged::find(&content, name)
            .map_err(|problem| CommandError::because(format!("merge into {}", path.display()), problem))?;
        Ok(Self { path, content, sealed })
    }

    /// Gives a Secret the identity of the `SealedSecret`. A Secret that says otherwise is refused.
    pub(super) fn adopt(&self, secret: &mut PlainSecret, args: &Args) -> Result<(), CommandError> {
        let (sealed, file) = (&self.sealed, self.path.display());
        let differs = |what: &str, own: &str, theirs: &str| {
            CommandError::usage(format!(
                "cannot merge into {file}: its SealedSecret has {what} {theirs}, not {own}"
            ))
            .hint("all values of a SealedSecret have one name, namespace and scope")
        };
        if !secret.name.is_empty() && secret.name != sealed.name {
            return Err(differs("the name", &secret.name, &sealed.name));
        }
        if let Some(own) = secret.namespace.as_deref().filter(|own| sealed.namespace.as_deref() != Some(own))
        {
            if sealed.namespace.is_some() {
                return Err(differs("the namespace", own, sealed.namespace.as_deref().unwrap_or_default()));
            }
        } else {
            secret.namespace.clone_from(&sealed.namespace);
        }
        if let Some(scope) =
            args.scope.map(super::args::ScopeArg::scope).filter(|scope| *scope != sealed.scope)
        {
            return Err(differs("the scope", scope.name(), sealed.scope.name()));
        }
        secret.name.clone_from(&sealed.name);
        secret.scope = sealed.scope;
        Ok(())
    }

    /// The file, for messages.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The file with the values in it.
    pub(super) fn change(
        &self,
        key: &SealingKey,
        secret: &PlainSecret,
        overwrite: bool,
    ) -> Result<Change, CommandError> {
        let encrypted = encrypted(key, secret)?;
        let after = merge(&self.content, &self.sealed, &encrypted, overwrite).map_err(|problem| {
            let exists = matches!(problem, plumb_core::secrets::MergeProblem::KeysExist(_));
            CommandError::because(format!("merge into {}", self.path.display()), problem)
                .hint_if(exists, "--overwrite replaces their values; nothing was written")
        })?;
        Ok(Change { path: self.path.to_owned(), before: self.content.clone(), after })
    }
}
