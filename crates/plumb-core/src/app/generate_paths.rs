//! `argocd.argoproj.io/manifest-generate-paths`: the files of a repository that an app says it depends on.

use std::collections::BTreeMap;

use super::Source;
use crate::glob::Glob;

/// The annotation: paths separated by `;`, from the root of the repository (`/shared`) or below the source's own path.
pub const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// The paths that one source of an app depends on.
#[derive(Debug)]
pub struct GeneratePaths(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    path: String,
    glob: Option<Glob>,
}

impl GeneratePaths {
    /// The paths that an app with these annotations names for one of its sources. `None` if it names none: every file counts
    /// then.
    pub fn of(annotations: &BTreeMap<String, String>, source: &Source) -> Option<Self> {
        let annotation = annotations.get(GENERATE_PATHS)?;
        let folder = source.path.as_deref().unwrap_or_default();
        let items = annotation.split(';').map(str::trim).filter(|item| !item.is_empty());
        let patterns: Vec<Pattern> = items
            .map(|item| match item.strip_prefix('/') {
                Some(from_root) => clean(from_root),
                None => clean(&format!("{folder}/{item}")),
            })
            .map(|path| Pattern { glob: Glob::path(&path).ok(), path })
            .collect();
        (!patterns.is_empty()).then_some(Self(patterns))
    }

    /// True if a change of this file concerns the source.
    pub fn concern(&self, file: &str) -> bool {
        let file = clean(file);
        self.0.iter().any(|pattern| pattern.concerns(&file))
    }
}

impl Pattern {
    fn concerns(&self, file: &str) -> bool {
        let is_below = self.path.is_empty()
            || file
                .strip_prefix(self.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below || self.glob.as_ref().is_some_and(|glob| glob.matches(file))
    }
}

/// The path without empty steps, `.` and `..`, which cannot lead above the root.
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

    fn check(annotation: &str, file: &str, expected: Option<bool>) {
        let annotations = BTreeMap::from([(GENERATE_PATHS.to_owned(), annotation.to_owned())]);
        let source = Source { path: Some("apps/web".to_owned()), ..Source::default() };
        let concerned = GeneratePaths::of(&annotations, &source).map(|paths| paths.concern(file));
        assert_eq!(concerned, expected, "{annotation} {file}");
    }

    #[test]
    fn paths_are_relative_to_the_source_or_to_the_root() {
        for (annotation, file, expected) in [
            (".", "apps/web/a.yaml", true),
            (".", "apps/web/deep/a.yaml", true),
            (".", "apps/webshop/a.yaml", false),
            (".", "apps/db/a.yaml", false),
            ("../shared", "apps/shared/a.yaml", true),
            ("../web", "apps/web/a.yaml", true),
            ("../we", "apps/web/a.yaml", false),
            ("/apps", "apps/web/a.yaml", true),
            ("/apps/*/*.yaml", "apps/web/a.yaml", true),
            ("/shared;.", "shared/a.yaml", true),
            ("/shared", "apps/web/a.yaml", false),
            ("/shared/*.yaml", "shared/a.yaml", true),
            ("/shared/*.yaml", "shared/deep/a.yaml", false),
            ("/", "anything", true),
            ("/other;.", "apps/web/a.yaml", true),
        ] {
            check(annotation, file, Some(expected));
        }
        check("", "anything", None);
        check(" ; ", "anything", None);
    }
}
