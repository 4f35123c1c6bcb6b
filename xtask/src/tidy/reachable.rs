//! Every Rust file is reachable from a crate root: a test file that no `mod` names never runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Violation, tracked_files};

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let files: BTreeSet<PathBuf> =
        tracked_files(root)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).collect();
    let mut reached = BTreeSet::new();
    for file in files.iter().filter(|file| is_crate_root(file)) {
        walk(root, file, &files, &mut reached)?;
    }
    Ok(files
        .difference(&reached)
        .map(|file| {
            Violation::new(
                file.display().to_string(),
                "no `mod` leads here: name it in its parent, or remove it",
            )
        })
        .collect())
}

/// `src/lib.rs`, `src/main.rs`, `build.rs`, and the files right inside `src/bin`, `tests`, `benches`, `examples`,
/// `fuzz_targets`.
fn is_crate_root(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let parent = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    match parent.as_str() {
        "src" => name == "lib.rs" || name == "main.rs",
        "bin" | "tests" | "benches" | "examples" | "fuzz_targets" => {
            // `src/…/tests/x.rs` is a module, `tests/x.rs` beside `src` is a root.
            parent == "bin" || !file.components().any(|part| part.as_os_str() == "src")
        }
        _ => {
            name == "build.rs"
                || (name == "main.rs"
                    && file
                        .components()
                        .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "examples"))
        }
    }
}

fn walk(root: &Path, file: &Path, files: &BTreeSet<PathBuf>, reached: &mut BTreeSet<PathBuf>) -> Result<()> {
    if !reached.insert(file.to_path_buf()) {
        return Ok(());
    }
    let text = std::fs::read_to_string(root.join(file)).with_context(|| file.display().to_string())?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let parent = file.parent().unwrap_or(Path::new(""));
    let home = if matches!(&*name, "lib.rs" | "main.rs" | "mod.rs" | "build.rs") || is_crate_root(file) {
        parent.to_path_buf()
    } else {
        file.with_extension("")
    };
    for (module, path) in declared_modules(&text) {
        let candidates = match path {
            Some(path) => vec![parent.join(path)],
            None => vec![home.join(format!("{module}.rs")), home.join(&module).join("mod.rs")],
        };
        for candidate in candidates {
            if files.contains(&candidate) {
                walk(root, &candidate, files, reached)?;
            }
        }
    }
    Ok(())
}

/// `mod name;` declarations with their `#[path = "…"]`, if any. Those inside `mod outer { … }` come as
/// `outer/name`, which is where the compiler looks for them.
fn declared_modules(text: &str) -> Vec<(String, Option<String>)> {
    let mut path = None;
    let mut modules = Vec::new();
    let mut outer: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line == "}" {
            outer.retain(|(opened, _)| *opened < indent);
        }
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.split('"').next().map(str::to_owned);
            continue;
        }
        let visibilities = ["pub(crate) ", "pub(super) ", "pub "];
        let bare = visibilities.iter().find_map(|visibility| line.strip_prefix(visibility)).unwrap_or(line);
        let Some(rest) = bare.strip_prefix("mod ") else {
            if !line.starts_with("#[") {
                path = None;
            }
            continue;
        };
        if let Some(name) = rest.strip_suffix('{') {
            outer.push((indent, name.trim().to_owned()));
        } else if let Some(name) = rest.split(';').next().filter(|_| rest.contains(';')) {
            let folders = outer.iter().map(|(_, name)| format!("{name}/"));
            let place: String = folders.chain([name.trim().to_owned()]).collect();
            modules.push((place, path.take()));
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        let text = "mod a;\npub(crate) mod b;\n#[cfg(test)]\nmod tests;\n#[path = \"x/y.rs\"]\nmod c;\nmod d {\n    mod e;\n}\nmod f;\n";
        let names: Vec<_> = declared_modules(text);
        assert_eq!(
            names,
            [
                ("a".to_owned(), None),
                ("b".to_owned(), None),
                ("tests".to_owned(), None),
                ("c".to_owned(), Some("x/y.rs".to_owned())),
                ("d/e".to_owned(), None),
                ("f".to_owned(), None),
            ]
        );
    }

    #[test]
    fn roots_are_told_from_modules() {
        for root in [
            "crates/a/src/lib.rs",
            "crates/a/tests/it.rs",
            "crates/a/benches/b.rs",
            "crates/a/tests/it/main.rs",
        ] {
            assert!(is_crate_root(Path::new(root)), "{root}");
        }
        for module in ["crates/a/src/b.rs", "crates/a/src/b/tests/c.rs", "crates/a/tests/it/case.rs"] {
            assert!(!is_crate_root(Path::new(module)), "{module}");
        }
    }
}
