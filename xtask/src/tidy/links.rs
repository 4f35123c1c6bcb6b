//! Every file that a document names exists: links in all documents, and paths in backticks in
//! CONTRIBUTING.md and ARCHITECTURE.md.
//!
//! A path in backticks may leave out its first folders: `drift/class.rs` and `drift/classes/` are found
//! wherever they are in the repository.

use std::path::Path;

use anyhow::Result;

use super::reading::Tree;
use super::violation::Violation;

/// The documents in which every path in backticks is checked.
const GUIDES: &[&str] = &["CONTRIBUTING.md", "ARCHITECTURE.md"];

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let mut report = |document: &Path, named: &str| {
        let what = format!("`{named}` does not exist");
        found.push(Violation::new(document.display().to_string(), what));
    };
    for document in tree.with_extension("md") {
        let text = tree.text(document)?;
        let folder = document.parent().unwrap_or(Path::new(""));
        for link in links(&text).into_iter().filter(|link| !tree.root().join(folder).join(link).exists()) {
            report(document, link);
        }
        if GUIDES.iter().any(|guide| document == Path::new(guide)) {
            for path in paths(&text).into_iter().filter(|path| !is_known(tree.paths(), path)) {
                report(document, &path);
            }
        }
    }
    Ok(found)
}

/// The targets of links to files: `[text](target)`.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
        .collect()
}

/// The paths in backticks, with `{a,b}` written out. A word is a path if it has a slash or the name of a source
/// file, and no character that a path of this repository does not have.
fn paths(text: &str) -> Vec<String> {
    let spans = text.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.filter(|span| is_path(span)).flat_map(expanded).collect()
}

fn is_path(span: &str) -> bool {
    let has_plain_characters = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},*".contains(c));
    let is_file = [".rs", ".md", ".toml", ".txt", ".yaml"].iter().any(|end| span.ends_with(end));
    // The first part of an API group or an annotation has a dot: `argoproj.io/v1alpha1`.
    let first = span.split('/').next().unwrap_or_default();
    let is_hidden = first.starts_with('.');
    has_plain_characters
        && (is_file || (span.contains('/') && (is_hidden || !first.contains('.'))))
        && !span.starts_with('/')
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn expanded(span: &str) -> Vec<String> {
    let Some((before, rest)) = span.split_once('{') else { return vec![span.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![span.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

/// True if a file or a folder of the repository ends with this path. A `*` is any one name.
fn is_known<'a>(files: impl Iterator<Item = &'a Path>, named: &str) -> bool {
    let wanted: Vec<&str> = named.trim_end_matches('/').split('/').collect();
    let mut files = files;
    files.any(|file| {
        let parts: Vec<String> =
            file.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        parts.windows(wanted.len()).any(|window| {
            window.iter().zip(&wanted).all(|(part, wanted)| {
                *wanted == "*" || part == wanted || part.strip_suffix(".rs") == Some(*wanted)
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_read() {
        let text = "[a](docs/a.md#part) [b](https://example.com/x) [c](#here) [d](d.md)";
        assert_eq!(links(text), ["docs/a.md", "d.md"]);
    }

    #[test]
    fn paths_are_told_from_other_code() {
        let text = "`drift/class.rs` `docs/` `argoproj.io/v1alpha1` `plan::build` `cargo xtask` `a/{b,c}.rs` \
                    `lib.rs` `.ci/run` `/spec/replicas`\n```\n`x/y`\n```";
        assert_eq!(paths(text), ["drift/class.rs", "docs/", "a/b.rs", "a/c.rs", "lib.rs", ".ci/run"]);
    }

    #[test]
    fn a_path_is_found_by_its_end_or_as_a_folder() {
        let files = ["crates/plumb-core/src/drift/classes/live_edit.rs", "docs/health.md"];
        let known = |named: &str| is_known(files.iter().map(Path::new), named);
        for named in
            ["drift/classes", "classes/live_edit.rs", "drift/classes/live_edit", "docs/", "crates/*/src"]
        {
            assert!(known(named), "{named}");
        }
        for named in ["drift/live_edit.rs", "health", "rift/classes"] {
            assert!(!known(named), "{named}");
        }
    }
}
