//! Working copies of repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_core::app::Source;
use plumb_core::project::{normalize_repo_url, shown_repo_url};
use plumb_git::WorkingCopy;

use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::render_here::checkout;

/// The local directories of the repositories.
pub(crate) struct Checkouts {
    flag: &'static str,
    by_url: BTreeMap<String, PathBuf>,
    rest: Option<PathBuf>,
    /// Does the user name any?
    is_given: bool,
}

impl Checkouts {
    /// Reads `[REPO_URL=]PATH` of a flag. Without any, the current directory is the checkout of all repositories.
    pub(crate) fn parse(flag: &'static str, written: &[String]) -> Result<Self, CommandError> {
        let is_given = !written.is_empty();
        let mut checkouts = Self { flag, by_url: BTreeMap::new(), rest: None, is_given };
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
        self.of_url(&source.repo_url)
    }

    /// The checkout of a repository; an error if there is none.
    pub(crate) fn of_url(&self, repo_url: &str) -> Result<&Path, CommandError> {
        let url = normalize_repo_url(repo_url);
        let path = self.by_url.get(&url).or(self.rest.as_ref()).ok_or_else(|| {
            CommandError::new(format!("no checkout of {} given", shown_repo_url(repo_url)))
                .hint(format!("use {} {}=PATH", self.flag, shown_repo_url(repo_url)))
                .exit(ExitCode::Usage)
        })?;
        if path.is_dir() {
            return Ok(path);
        }
        Err(CommandError::usage(format!("checkout {} is not a directory", path.display())))
    }

    /// The checkouts of these repositories (normalized URLs), each by its URL. A checkout without a URL belongs to the
    /// repositories that its remotes name; if none of them is wanted, to the only wanted one.
    pub(crate) fn of_repositories(
        &self,
        urls: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, CommandError> {
        let mut found = BTreeMap::new();
        for (url, path) in &self.by_url {
            found.insert(url.clone(), root(path)?);
        }
        let Some(rest) = &self.rest else { return Ok(found) };
        let copy = WorkingCopy::open(rest).map_err(|error| CommandError::because("use the clone", error))?;
        let remotes: BTreeSet<String> = copy.remotes().iter().map(|url| normalize_repo_url(url)).collect();
        let named: Vec<&String> = urls.intersection(&remotes).collect();
        let of_rest = match (named.is_empty(), urls.len()) {
            (false, _) => named,
            (true, 1) => urls.iter().collect(),
            (true, _) => {
                let message = format!("no app uses a repository that {} is a clone of", rest.display());
                let hint = format!("name its repository: {} REPO_URL=PATH", self.flag);
                return Err(CommandError::usage(message).hint(hint));
            }
        };
        found.extend(of_rest.into_iter().map(|url| (url.clone(), copy.root().display().to_string())));
        Ok(found)
    }

    /// The checkouts of repositories, by normalized URL. A checkout without a URL belongs to the repositories that its
    /// remotes name, or that it is itself; if none of these is wanted, to all. A directory in a checkout means all of it.
    pub(crate) fn by_repository(&self, urls: &BTreeSet<String>) -> BTreeMap<String, PathBuf> {
        let own: BTreeSet<String> = self.rest.iter().flat_map(|path| own_urls(path)).collect();
        let named: BTreeSet<&String> = urls.intersection(&own).collect();
        let of = |url: &String| match self.by_url.get(url) {
            Some(path) => Some(top(path)),
            None => self.rest.as_deref().map(top).filter(|_| named.is_empty() || named.contains(url)),
        };
        urls.iter().filter_map(|url| Some((url.clone(), of(url)?))).collect()
    }

    /// Those that were given by a flag and are clones, by the normalized URL of their repository: what is compared with the
    /// cluster can be read from them.
    pub(crate) fn clones(&self, urls: &BTreeSet<String>) -> BTreeMap<String, String> {
        if !self.is_given {
            return BTreeMap::new();
        }
        let own: BTreeSet<String> = self.rest.iter().flat_map(|path| own_urls(path)).collect();
        // A clone of something else has other commits, also under the same paths.
        let is_of = |url: &String| self.by_url.contains_key(url) || own.contains(url) || urls.len() == 1;
        let clones = self.by_repository(urls).into_iter().filter(|(url, _)| is_of(url));
        clones.filter_map(|(url, path)| Some((url, root(&path).ok()?))).collect()
    }

    /// All checkouts, as the user named them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        self.by_url.values().chain(&self.rest).map(PathBuf::as_path)
    }
}

/// The root of the checkout that a directory is in. Paths of sources begin there. Without Git, it is the directory itself.
pub(crate) fn top(path: &Path) -> PathBuf {
    checkout(path, None).map_or_else(|_| path.to_owned(), |(root, _)| root)
}

/// The normalized URLs of the remotes of a clone, and its own.
pub(crate) fn own_urls(path: &Path) -> BTreeSet<String> {
    let Ok(copy) = WorkingCopy::open(path) else { return BTreeSet::new() };
    let here = copy.root().display().to_string();
    let here = [format!("file://{here}"), here];
    copy.remotes().iter().chain(&here).map(|url| normalize_repo_url(url)).collect()
}

fn root(path: &Path) -> Result<String, CommandError> {
    let copy = WorkingCopy::open(path).map_err(|error| CommandError::because("use the clone", error))?;
    Ok(copy.root().display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_a_checkout_means_the_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let apps = root.join("apps");
        std::fs::create_dir_all(&apps).unwrap();
        let urls = BTreeSet::from(["https://example.com/shop".to_owned()]);
        let found = |written: &str| {
            let checkouts = Checkouts::parse("--repo", &[written.to_owned()]).unwrap();
            checkouts.by_repository(&urls).into_values().collect::<Vec<PathBuf>>()
        };
        let named = format!("https://example.com/shop={}", apps.display());
        let here = apps.display().to_string();
        assert_eq!([found(&here), found(&named)], [[apps.clone()], [apps.clone()]], "no repository of Git");
        std::fs::create_dir(root.join(".git")).unwrap();
        assert_eq!([found(&here), found(&named)], [[root.clone()], [root.clone()]]);
    }
}
