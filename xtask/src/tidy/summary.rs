//! Every page of `docs` is in the table of contents of the site.

use anyhow::Result;

use super::reading::Tree;
use super::violation::Violation;

const CONTENTS: &str = "docs/SUMMARY.md";

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let mut contents = None;
    let pages: Vec<String> = tree.with_extension("md").map(|path| path.display().to_string()).collect();
    for path in tree.with_extension("md").filter(|path| path.display().to_string() == CONTENTS) {
        contents = Some(tree.text(path)?);
    }
    let contents = contents.unwrap_or_default();
    for page in pages.iter().filter(|page| page.as_str() != CONTENTS) {
        let Some(name) = page.strip_prefix("docs/") else { continue };
        if !contents.contains(&format!("]({name})")) {
            found.push(Violation::new(page.clone(), format!("{CONTENTS} does not list it")));
        }
    }
    Ok(found)
}
