//! `argocd.argoproj.io/manifest-generate-paths`: the files of a repository that an app depends on.
//!
//! Without it, plumb renders again whatever changed. With it, changes outside the paths are ignored even if
//! they would change the rendering (a generator that prints the commit, a base that is not listed).

use plumb_core::app::{App, Source};
use plumb_core::glob::Glob;
use plumb_core::source::{RepoPath, SourceFiles, changed_files};

use super::resolve::Resolved;

const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";

/// With more changed files than this, the app is rendered again without further checks.
const MAX_CHANGED: usize = 10_000;

/// True if the rendering at `before` is still valid, because no commit since then affects the app.
pub(super) fn is_unaffected(app: &App, before: &[String], now: &[Resolved]) -> bool {
    let Some(annotation) = app.annotations.get(ANNOTATION).filter(|text| !text.trim().is_empty()) else {
        return false;
    };
    let patterns = patterns(annotation, &app.sources);
    !patterns.is_empty()
        && before.len() == now.len()
        && before.iter().zip(now).all(|(before, now)| {
            *before == now.revision || no_change_matches(&patterns, before, now).unwrap_or(false)
        })
}

/// True if no changed file matches a pattern. `None` if the changed files are not known.
fn no_change_matches(patterns: &[Pattern], before: &str, now: &Resolved) -> Option<bool> {
    let (old, new) = (now.tree_at(before)?, now.tree()?);
    // Changes in the files of a submodule are not visible here.
    let changed = changed_files(&old as &dyn SourceFiles, &new, MAX_CHANGED).ok()??;
    Some(!changed.iter().any(|path| patterns.iter().any(|pattern| pattern.matches(path))))
}

struct Pattern {
    path: String,
    glob: Option<Glob>,
}

impl Pattern {
    fn matches(&self, file: &RepoPath) -> bool {
        let file = file.as_str();
        let is_below = self.path.is_empty()
            || file
                .strip_prefix(self.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below || self.glob.as_ref().is_some_and(|glob| glob.matches(file))
    }
}

/// Paths that start with `/` are relative to the root of the repository, others to the path of each source.
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

/// Removes empty segments and `.`, and resolves `..`, which cannot lead above the root.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_each_source_or_to_the_root() {
        let source = |path: &str| Source { path: Some(path.to_owned()), ..Source::default() };
        let matches = |annotation: &str, file: &str| {
            let file = RepoPath::parse(file).unwrap();
            patterns(annotation, &[source("apps/web"), source("apps/db")])
                .iter()
                .any(|pattern| pattern.matches(&file))
        };
        assert!(matches(".", "apps/web/a.yaml"));
        assert!(matches(".", "apps/db/deep/a.yaml"));
        assert!(!matches(".", "apps/webshop/a.yaml"));
        assert!(matches("../shared", "apps/shared/a.yaml"));
        assert!(matches("/shared;.", "shared/a.yaml"));
        assert!(!matches("/shared", "apps/web/a.yaml"));
        assert!(matches("/shared/*.yaml", "shared/a.yaml"));
        assert!(!matches("/shared/*.yaml", "shared/deep/a.yaml"));
        assert!(matches("/", "anything"));
    }
}
