//! No module has a name that says nothing about what is in it.

use std::path::Path;

use super::reading::Tree;
use super::violation::Violation;

const FORBIDDEN: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "misc", "type", "types"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust_files().filter_map(|file| violation(&file.path)).collect()
}

fn violation(path: &Path) -> Option<Violation> {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let name = parts
        .map(|part| part.trim_end_matches(".rs").to_owned())
        .find(|name| FORBIDDEN.contains(&name.as_str()))?;
    Some(Violation::new(path.display().to_string(), format!("`{name}` says nothing: name what it holds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_folders_are_checked() {
        for path in ["crates/a/src/util.rs", "crates/a/src/common/mod.rs", "crates/a/src/b/types.rs"] {
            assert!(violation(Path::new(path)).is_some(), "{path}");
        }
        for path in ["crates/a/src/utility.rs", "crates/a/src/types_of_source.rs"] {
            assert_eq!(violation(Path::new(path)), None, "{path}");
        }
    }
}
