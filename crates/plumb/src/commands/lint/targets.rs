//! What to check: directories, or apps by name.

use std::path::{Path, PathBuf};

use crate::error::CommandError;
use crate::render_here::checkout;
use crate::repository::{RepositoryApp, RepositoryState};

/// What to check.
pub(super) struct Targets {
    /// Paths in the repository; `.` is all of it.
    pub(super) directories: Vec<String>,
    /// Names of apps.
    apps: Vec<String>,
}

impl Targets {
    /// Sorts arguments into directories and apps, and finds the repository that they are in. What does not exist as a file
    /// or directory is the name of an app of the repository here.
    pub(super) fn read(written: &[String]) -> Result<(PathBuf, Self), CommandError> {
        let mut targets = Self { directories: Vec::new(), apps: Vec::new() };
        let mut roots: Vec<PathBuf> = Vec::new();
        for text in written {
            let path = Path::new(text);
            if !path.exists() {
                targets.apps.push(text.clone());
                continue;
            }
            let directory = if path.is_dir() { Some(path) } else { path.parent() };
            let directory = directory.filter(|directory| !directory.as_os_str().is_empty());
            let (root, inside) = checkout(directory.unwrap_or(Path::new(".")), None)?;
            targets.directories.push(inside);
            roots.push(root);
        }
        if roots.is_empty() {
            let (root, inside) = checkout(Path::new("."), None)?;
            if targets.apps.is_empty() {
                targets.directories.push(inside);
            }
            roots.push(root);
        }
        roots.dedup();
        match roots.as_slice() {
            [root] => Ok((root.clone(), targets)),
            _ => Err(CommandError::usage("the directories are in different repositories")
                .hint("run the command once for each repository")),
        }
    }

    /// Is an app to be checked? It is if its name was given, or if its Application or one of its sources is in a directory
    /// that was given.
    pub(super) fn has(&self, app: &RepositoryApp) -> bool {
        let is_in = |place: &str| self.directories.iter().any(|directory| is_within(place, directory));
        self.apps.contains(&app.name) || is_in(&app.file) || app.paths.iter().any(|path| is_in(path))
    }

    /// Fails for a name that no app has: a misspelled name must not look like an app without findings.
    pub(super) fn refuse_unknown(
        &self,
        state: &RepositoryState,
        apps: &[RepositoryApp],
    ) -> Result<(), CommandError> {
        let unknown = self.apps.iter().find(|name| !apps.iter().any(|app| app.name == **name));
        if let Some(name) = unknown {
            let what = format!("{name} is neither a directory nor an app in {}", state.root.display());
            return Err(CommandError::usage(what)
                .hint("apps are Applications in the YAML files of the repository, or rendered from them"));
        }
        if apps.iter().any(|app| self.has(app)) {
            return Ok(());
        }
        let what = format!("no app of {} is in {}", state.root.display(), self.directories.join(", "));
        Err(CommandError::usage(what)
            .hint("name a directory with an Application, or one that an app renders"))
    }
}

fn is_within(place: &str, directory: &str) -> bool {
    let (place, directory) = (place.trim_start_matches("./"), directory.trim_start_matches("./"));
    directory == "."
        || directory.is_empty()
        || place == directory
        || place.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn a_place_is_in_a_directory() {
        for (place, directory, expected) in [
            ("apps/web/x.yaml", ".", true),
            ("apps/web/x.yaml", "apps", true),
            ("apps/web", "apps/web", true),
            ("apps/web-2", "apps/web", false),
            ("./apps/web", "apps", true),
            ("apps", "apps/web", false),
        ] {
            assert_eq!(is_within(place, directory), expected, "{place} {directory}");
        }
    }
}
