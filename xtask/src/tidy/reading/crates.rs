//! The modules of each crate, found by following `mod` declarations from `src/lib.rs` or `src/main.rs`.

use std::path::{Path, PathBuf};

use syn::Item;

use super::attributes::{is_test_only, of_item};
use super::tree::{RustFile, Tree};

/// A crate root and everything below it.
pub(in crate::tidy) struct Crate<'a> {
    /// The folder of its Cargo.toml: `plumb-core`.
    pub(in crate::tidy) name: String,
    /// `src/lib.rs` or `src/main.rs`.
    pub(in crate::tidy) root: &'a RustFile,
    /// The files below the root.
    pub(in crate::tidy) modules: Vec<Module<'a>>,
}

/// A file of a crate.
pub(in crate::tidy) struct Module<'a> {
    /// The names from the crate root: `["drift", "classes", "live_edit"]`.
    pub(in crate::tidy) path: Vec<String>,
    pub(in crate::tidy) file: &'a RustFile,
    /// Compiled for tests only.
    pub(in crate::tidy) is_test: bool,
}

impl Module<'_> {
    /// The top-level module that it belongs to.
    pub(in crate::tidy) fn top(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }
}

/// Every crate of the tree that has a library or a program in `src`.
pub(in crate::tidy) fn crates(tree: &Tree) -> Vec<Crate<'_>> {
    let roots = tree
        .rust_files()
        .filter(|file| file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs"));
    roots
        .map(|root| {
            let source = root.path.parent().unwrap_or(Path::new(""));
            let folder = source.parent().and_then(Path::file_name).unwrap_or_default();
            let mut modules = Vec::new();
            let here = Position { path: Vec::new(), folder: source.to_path_buf(), is_test: false };
            collect(tree, &root.syntax.items, &here, &mut modules);
            Crate { name: folder.to_string_lossy().into_owned(), root, modules }
        })
        .collect()
}

/// A module while its declarations are followed.
struct Position {
    path: Vec<String>,
    /// Where the files of its children are.
    folder: PathBuf,
    is_test: bool,
}

fn collect<'a>(tree: &'a Tree, items: &'a [Item], here: &Position, modules: &mut Vec<Module<'a>>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let below = Position {
            path: here.path.iter().cloned().chain([name.clone()]).collect(),
            folder: here.folder.join(&name),
            is_test: here.is_test || is_test_only(of_item(item)),
        };
        if let Some((_, inline)) = &module.content {
            collect(tree, inline, &below, modules);
            continue;
        }
        let files = [here.folder.join(format!("{name}.rs")), below.folder.join("mod.rs")];
        let Some(file) = files.iter().find_map(|path| tree.rust_file(path)) else { continue };
        modules.push(Module { path: below.path.clone(), file, is_test: below.is_test });
        collect(tree, &file.syntax.items, &below, modules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_followed_and_tests_are_marked() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod b;\nmod inline { mod c; }\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b/mod.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/inline/c.rs", ""),
            ("crates/a/src/tests.rs", "mod e;"),
            ("crates/a/src/tests/e.rs", ""),
        ]);
        let found: Vec<String> = crates(&tree)
            .iter()
            .flat_map(|krate| &krate.modules)
            .map(|module| format!("{}{}", module.path.join("::"), if module.is_test { " test" } else { "" }))
            .collect();
        assert_eq!(found, ["b", "b::d", "inline::c", "tests test", "tests::e test"]);
    }
}
