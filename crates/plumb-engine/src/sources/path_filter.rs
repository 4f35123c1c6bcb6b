//! `argocd.argoproj.io/manifest-generate-paths`: which files of a repository an app says it depends on.
//!
//! Without it plumb already renders nothing anew that did not change. With it, changes outside the paths do not
//! count even where rendering would see them (a generator that prints the commit, a base that is not named).

use plumb_core::app::{App, Source};
use plumb_core::glob::Glob;
use plumb_core::source::{RepoPath, SourceFiles, changed_files};

use super::resolve::Resolved;

/// The annotation.
const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";

/// More changed files than this, and the app is rendered anew without looking further.
const MAX_CHANGED: usize = 10_000;

/// May what was rendered at `before` stand for the sources as they are now?
pub(super) fn nothing_concerns(app: &App, before: &[String], now: &[Resolved]) -> bool {
    let Some(annotation) = app.annotations.get(ANNOTATION).filter(|text| !text.trim().is_empty()) else {
        return false;
    };
    let patterns = patterns(annotation, &app.sources);
    !patterns.is_empty()
        && before.len() == now.len()
        && before.iter().zip(now).all(|(before, now)| {
            *before == now.revision || is_elsewhere(&patterns, before, now).unwrap_or(false)
        })
}

/// `None`: cannot be told.
fn is_elsewhere(patterns: &[Pattern], before: &str, now: &Resolved) -> Option<bool> {
    let (old, new) = (now.tree_at(before)?, now.tree()?);
    // Whether a submodule's files changed is not seen from here.
    let changed = changed_files(&old as &dyn SourceFiles, &new, MAX_CHANGED).ok()??;
    Some(!changed.iter().any(|path| patterns.iter().any(|pattern| pattern.concerns(path))))
}

struct Pattern {
    path: String,
    glob: Option<Glob>,
}

impl Pattern {
    fn concerns(&self, file: &RepoPath) -> bool {
        let file = file.as_str();
        let is_below = self.path.is_empty()
            || file
                .strip_prefix(self.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below || self.glob.as_ref().is_some_and(|glob| glob.matches(file))
    }
}

/// Paths from the root (`/shared`) count as they are, others below the path of every source.
fn patterns(annotation: &str, sources: &[Source]) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    let mut add = |path: &str| {
        let path = clean(path);
        let glob = Glob::path(&path).ok();
        patterns.push(Pattern { path, glob });
    };
    for item in annotation.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        if let Some(from_root) = item.strip_prefix('/') {
            add(from_root);
            continue;
        }
        for source in sources {
            add(&format!("{}/{item}", source.path.as_deref().unwrap_or_default()));
        }
    }
    patterns
}

/// Without empty steps, `.` and `..`, which cannot lead above the root.
fn clean(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_each_source_or_to_the_root() {
        let source = |path: &str| Source { path: Some(path.to_owned()), ..Source::default() };
        let concerns = |annotation: &str, file: &str| {
            let file = RepoPath::parse(file).unwrap();
            patterns(annotation, &[source("apps/web"), source("apps/db")])
                .iter()
                .any(|pattern| pattern.concerns(&file))
        };
        assert!(concerns(".", "apps/web/a.yaml"));
        assert!(concerns(".", "apps/db/deep/a.yaml"));
        assert!(!concerns(".", "apps/webshop/a.yaml"));
        assert!(concerns("../shared", "apps/shared/a.yaml"));
        assert!(concerns("/shared;.", "shared/a.yaml"));
        assert!(!concerns("/shared", "apps/web/a.yaml"));
        assert!(concerns("/shared/*.yaml", "shared/a.yaml"));
        assert!(!concerns("/shared/*.yaml", "shared/deep/a.yaml"));
        assert!(concerns("/", "anything"));
    }
}
