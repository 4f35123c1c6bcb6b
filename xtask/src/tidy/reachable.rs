//! Every Rust file is declared by a `mod`, up to a crate root: tests in a file without one never run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::reading::Tree;
use super::violation::Violation;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let files: BTreeSet<&Path> = tree.rust_files().map(|file| file.path.as_path()).collect();
    let mut reached = BTreeSet::new();
    for file in files.iter().filter(|file| is_crate_root(file)) {
        walk(tree, file, &mut reached);
    }
    let lost = files.iter().filter(|file| !reached.contains(**file));
    let what = "is declared by no `mod`: declare it in its parent, or remove it";
    lost.map(|file| Violation::new(file.display().to_string(), what)).collect()
}

/// `src/lib.rs`, `src/main.rs`, `build.rs`, and the files right inside `src/bin`, `tests`, `benches`, `examples`,
/// `fuzz_targets`.
pub(super) fn is_crate_root(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let parent = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    match parent.as_str() {
        "src" => name == "lib.rs" || name == "main.rs",
        "bin" | "tests" | "benches" | "examples" | "fuzz_targets" => {
            // `src/…/tests/x.rs` is a module. `tests/x.rs` beside `src` is a crate root.
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

fn walk(tree: &Tree, file: &Path, reached: &mut BTreeSet<PathBuf>) {
    let Some(source) = tree.rust_file(file).filter(|_| reached.insert(file.to_path_buf())) else { return };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let parent = file.parent().unwrap_or(Path::new(""));
    let home = if matches!(&*name, "lib.rs" | "main.rs" | "mod.rs" | "build.rs") || is_crate_root(file) {
        parent.to_path_buf()
    } else {
        file.with_extension("")
    };
    for (module, path) in declared_modules(&source.text) {
        let candidates = match path {
            Some(path) => vec![parent.join(path)],
            None => vec![home.join(format!("{module}.rs")), home.join(&module).join("mod.rs")],
        };
        for candidate in candidates {
            walk(tree, &candidate, reached);
        }
    }
}

/// `mod name;` declarations with their `#[path = "…"]`, if any. Those inside `mod outer { … }` are
/// returned as `outer/name`, where the compiler looks for them.
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
    fn crate_roots_and_modules_are_distinguished() {
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
