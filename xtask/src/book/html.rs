//! The links of the site that was built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Links of pages below `folder` to files that are not there: the page and the link.
pub(super) fn broken(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for page in pages(folder)? {
        // It has the links of every page, relative to the first one.
        if page.ends_with("print.html") || page.ends_with("404.html") {
            continue;
        }
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let parent = page.parent().unwrap_or(folder);
        let missing = targets(&text).into_iter().filter(|target| !parent.join(target).exists());
        found.extend(missing.map(|target| format!("{}: {target}", page.display())));
    }
    Ok(found)
}

fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The files that a page links to.
fn targets(html: &str) -> Vec<&str> {
    let quoted = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let files = quoted.filter_map(|target| target.split('#').next());
    files.filter(|file| !file.is_empty() && !file.contains(':')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_read() {
        let html =
            "<a href=\"a.html#x\"><a href=\"https://e.org\"><a href=\"#y\"><a class=\"b\" href=\"../c/\">";
        assert_eq!(targets(html), ["a.html", "../c/"]);
    }
}
