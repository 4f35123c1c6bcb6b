//! Every file that a document names exists: links in all documents with the headings that they name, and paths in
//! backticks in CONTRIBUTING.md and ARCHITECTURE.md.
//!
//! A path in backticks may leave out its first folders: `drift/class.rs` and `drift/classes/` are found
//! wherever they are in the repository.

use std::collections::{BTreeMap, BTreeSet};
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
        for Link { file, heading } in links(&text) {
            let path = tree.root().join(folder).join(file);
            if !path.exists() {
                report(document, file);
                continue;
            }
            let is_page = file.is_empty() || path.extension().is_some_and(|end| end == "md");
            if heading.is_empty() || !is_page {
                continue;
            }
            let page = if file.is_empty() { text.clone() } else { std::fs::read_to_string(&path)? };
            if !anchors(&page).contains(heading) {
                report(document, &format!("{file}#{heading}"));
            }
        }
        if GUIDES.iter().any(|guide| document == Path::new(guide)) {
            for path in paths(&text).into_iter().filter(|path| !is_known(tree.paths(), path)) {
                report(document, &path);
            }
        }
    }
    Ok(found)
}

/// The target of a link: a file, or empty for the same one, and a heading, or empty.
#[derive(Debug, PartialEq, Eq)]
struct Link<'text> {
    file: &'text str,
    heading: &'text str,
}

/// The targets of links to files: `[text](target)`.
fn links(text: &str) -> Vec<Link<'_>> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
        .map(|target| {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            Link { file, heading }
        })
        .collect()
}

/// The names of the headings of a page, as code hosts and mdBook make them. A name that comes again gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let heading = heading.trim_start_matches('#').trim();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = counts.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
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
        let found: Vec<(&str, &str)> = links(text).iter().map(|link| (link.file, link.heading)).collect();
        assert_eq!(found, [("docs/a.md", "part"), ("", "here"), ("d.md", "")]);
    }

    #[test]
    fn headings_have_the_names_that_links_use() {
        let text = "# `plumb app`: what it shows\n## Twice\n## Twice\n```sh\n# no heading\n```\n";
        let expected = ["plumb-app-what-it-shows", "twice", "twice-1"];
        assert_eq!(anchors(text).iter().map(String::as_str).collect::<Vec<_>>(), expected);
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
