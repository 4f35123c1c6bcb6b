//! `mod.rs` and `lib.rs` only declare and re-export, and a module with children is a folder with a `mod.rs`: no
//! `a.rs` is beside a folder `a/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::Item;

use super::reachable::is_crate_root;
use super::reading::{RustFile, Tree, is_test_only, of_item};
use super::violation::Violation;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let folders: BTreeSet<PathBuf> =
        tree.rust_files().filter_map(|file| Some(file.path.parent()?.to_path_buf())).collect();
    let mut found = Vec::new();
    for file in tree.rust_files() {
        let other = file.syntax.items.iter().find(|item| !only_declares(item));
        if let Some(name) = other.filter(|_| is_list(file)).map(name_of) {
            let what = format!("only declares and re-exports: move `{name}` to a file that says what it is");
            found.push(Violation::new(file.place(), what));
        }
        if !is_crate_root(&file.path) && folders.contains(&file.path.with_extension("")) {
            let home = file.path.with_extension("").join("mod.rs");
            found.push(Violation::new(
                file.place(),
                format!("has a folder beside it: move it to {}", home.display()),
            ));
        }
    }
    found
}

/// True for a `mod.rs`, and for a `lib.rs` that declares modules: one without them is the whole crate.
fn is_list(file: &RustFile) -> bool {
    let declares =
        || file.syntax.items.iter().any(|item| matches!(item, Item::Mod(item) if item.content.is_none()));
    match file.path.file_name() {
        Some(name) if name == Path::new("mod.rs") => true,
        Some(name) if name == Path::new("lib.rs") => declares(),
        _ => false,
    }
}

fn only_declares(item: &Item) -> bool {
    match item {
        Item::Use(_) | Item::ExternCrate(_) => true,
        Item::Mod(module) => module.content.is_none() || is_test_only(of_item(item)),
        _ => is_test_only(of_item(item)),
    }
}

fn name_of(item: &Item) -> String {
    match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Mod(item) => item.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Impl(_) => "impl".to_owned(),
        Item::Macro(item) => item.ident.as_ref().map_or_else(|| "macro".to_owned(), ToString::to_string),
        _ => "the items".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let found = super::check(&Tree::of(files));
        let found: Vec<&str> = found.iter().map(|violation| violation.place.as_str()).collect();
        assert_eq!(found, expected, "{files:?}");
    }

    #[test]
    fn a_list_of_modules_has_nothing_else() {
        let path = "crates/x/src/a/mod.rs";
        check(&[(path, "//! Doc.\nmod b;\npub use b::B;\n#[cfg(test)]\nmod tests { fn f() {} }")], &[]);
        check(&[(path, "mod b;\nfn f() {}")], &[path]);
        check(&[(path, "mod b { fn f() {} }")], &[path]);
        check(&[("crates/x/src/lib.rs", "fn f() {}")], &[]);
        check(&[("crates/x/src/lib.rs", "mod a;\nfn f() {}")], &["crates/x/src/lib.rs"]);
    }

    #[test]
    fn a_module_with_children_is_a_folder() {
        check(&[("crates/x/src/a.rs", ""), ("crates/x/src/a/b.rs", "")], &["crates/x/src/a.rs"]);
        check(&[("crates/x/src/a/mod.rs", ""), ("crates/x/src/a/b.rs", "")], &[]);
        check(&[("crates/x/tests/cli.rs", ""), ("crates/x/tests/cli/a.rs", "")], &[]);
    }
}
