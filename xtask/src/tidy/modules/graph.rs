//! Which top-level module of a crate uses which.

use std::collections::BTreeMap;
use std::path::PathBuf;

use syn::{Item, UseTree};

use super::uses::used_paths;
use crate::tidy::reading::{Crate, is_test_only, of_item};

/// The top-level modules of a crate and the uses between them.
pub(super) struct Graph {
    /// In the order of `lib.rs` or `main.rs`.
    pub(super) modules: Vec<String>,
    /// (user, used) → the first file with such a use.
    pub(super) uses: BTreeMap<(String, String), PathBuf>,
}

impl Graph {
    /// Tests are left out: they may use every module.
    pub(super) fn of(krate: &Crate<'_>) -> Self {
        let items = &krate.root.syntax.items;
        let modules: Vec<String> = items.iter().filter_map(declared).collect();
        let exported = re_exports(items, &modules);
        let mut uses = BTreeMap::new();
        for module in krate.modules.iter().filter(|module| !module.is_test) {
            for path in used_paths(&module.file.syntax, &module.path) {
                let Some(first) = path.first() else { continue };
                // `crate::Name` is a use of the module that the root exports `Name` from.
                let target = if modules.contains(first) { Some(first) } else { exported.get(first) };
                if let Some(target) = target.filter(|target| *target != module.top()) {
                    uses.entry((module.top().to_owned(), target.clone()))
                        .or_insert_with(|| module.file.path.clone());
                }
            }
        }
        Self { modules, uses }
    }

    /// The modules that a module uses.
    pub(super) fn used_by<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a str> {
        self.uses.keys().filter(move |(from, _)| from == user).map(|(_, used)| used.as_str())
    }
}

fn declared(item: &Item) -> Option<String> {
    let Item::Mod(module) = item else { return None };
    (!is_test_only(of_item(item))).then(|| module.ident.to_string())
}

/// The names that the root re-exports, with the module each comes from.
fn re_exports(items: &[Item], modules: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in items {
        let Item::Use(item) = item else { continue };
        let UseTree::Path(first) = &item.tree else { continue };
        let (module, tree) = match (&first.ident, &*first.tree) {
            (prefix, UseTree::Path(second)) if prefix == "crate" || prefix == "self" => {
                (second.ident.to_string(), &*second.tree)
            }
            (module, tree) => (module.to_string(), tree),
        };
        if modules.contains(&module) {
            found.extend(names(tree).into_iter().map(|name| (name, module.clone())));
        }
    }
    found
}

/// The names that a `use` brings into scope.
fn names(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => names(&path.tree),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(name) => vec![name.rename.to_string()],
        UseTree::Group(group) => group.items.iter().flat_map(names).collect(),
        UseTree::Glob(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::reading::{Tree, crates};

    #[test]
    fn uses_are_found_in_files_and_through_re_exports() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{B, inner::Deep as Renamed};"),
            ("crates/x/src/a.rs", "use crate::B;\nuse crate::a::own;"),
            ("crates/x/src/b/mod.rs", "mod inner;"),
            ("crates/x/src/b/inner.rs", "use super::super::c::C;\nuse super::X;"),
            ("crates/x/src/c.rs", "use crate::Renamed;\n#[cfg(test)]\nmod tests;"),
            ("crates/x/src/c/tests.rs", "use crate::a::A;"),
        ]);
        let graph = Graph::of(&crates(&tree)[0]);
        assert_eq!(graph.modules, ["a", "b", "c"]);
        let uses: Vec<String> = graph.uses.keys().map(|(user, used)| format!("{user}→{used}")).collect();
        assert_eq!(uses, ["a→b", "b→c", "c→b"]);
    }
}
