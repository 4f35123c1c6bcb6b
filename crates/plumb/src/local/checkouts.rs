//! Working copies of repositories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_core::app::Source;
use plumb_core::project::{normalize_repo_url, shown_repo_url};

use crate::error::CommandError;
use crate::exit::ExitCode;

/// The local directories of the repositories.
pub(crate) struct Checkouts {
    flag: &'static str,
    by_url: BTreeMap<String, PathBuf>,
    rest: Option<PathBuf>,
}

impl Checkouts {
    /// Reads `[REPO_URL=]PATH` of a flag. Without any, the current directory is the checkout of all repositories.
    pub(crate) fn parse(flag: &'static str, written: &[String]) -> Result<Self, CommandError> {
        let mut checkouts = Self { flag, by_url: BTreeMap::new(), rest: None };
        for text in written {
            match text.rsplit_once('=') {
                Some((url, path)) => {
                    checkouts.by_url.insert(normalize_repo_url(url), PathBuf::from(path));
                }
                None if checkouts.rest.is_none() => checkouts.rest = Some(PathBuf::from(text)),
                None => {
                    let message = format!("{flag} without REPO_URL= can be given only once");
                    return Err(CommandError::usage(message));
                }
            }
        }
        if checkouts.rest.is_none() && checkouts.by_url.is_empty() {
            checkouts.rest = Some(PathBuf::from("."));
        }
        Ok(checkouts)
    }

    /// The checkout of a source; an error if there is none.
    pub(crate) fn of(&self, source: &Source) -> Result<&Path, CommandError> {
        let url = normalize_repo_url(&source.repo_url);
        let path = self.by_url.get(&url).or(self.rest.as_ref()).ok_or_else(|| {
            CommandError::new(format!("no checkout of {} given", shown_repo_url(&source.repo_url)))
                .hint(format!("use {} {}=PATH", self.flag, shown_repo_url(&source.repo_url)))
                .exit(ExitCode::Usage)
        })?;
        if path.is_dir() {
            return Ok(path);
        }
        Err(CommandError::usage(format!("checkout {} is not a directory", path.display())))
    }

    /// All checkouts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        self.by_url.values().chain(&self.rest).map(PathBuf::as_path)
    }
}
