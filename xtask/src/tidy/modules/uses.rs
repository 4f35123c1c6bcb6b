//! The paths that a module names, resolved from the crate root.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemMod, ItemUse, Macro, UseTree};

use crate::tidy::reading::{is_test_only, of_impl_item, of_item};

/// A path inside this crate: `["drift", "judge"]` for `crate::drift::judge`.
pub(super) type CratePath = Vec<String>;

/// The paths inside this crate that the production code of a module names: in `use`, in expressions and types,
/// and in the arguments of macros.
pub(super) fn used_paths(syntax: &syn::File, module: &[String]) -> Vec<CratePath> {
    let mut reader = Reader { module: module.to_vec(), found: Vec::new() };
    reader.visit_file(syntax);
    reader.found
}

struct Reader {
    /// The module that is being read, from the crate root.
    module: Vec<String>,
    found: Vec<CratePath>,
}

impl Reader {
    /// Keeps a path as it is written, if it leads into this crate.
    fn add(&mut self, written: &[String]) {
        let n_up = written.iter().take_while(|name| *name == "super").count();
        let (base, rest): (&[String], _) = match written.first().map(String::as_str) {
            Some("crate") => (&[], &written[1..]),
            Some("self") if written.get(1).is_some_and(|name| name == "super") => {
                return self.add(&written[1..]);
            }
            Some("super") => {
                (self.module.get(..self.module.len().saturating_sub(n_up)).unwrap_or(&[]), &written[n_up..])
            }
            // `self::…` and paths without a prefix stay inside the module.
            _ => return,
        };
        self.found.push(base.iter().chain(rest).cloned().collect());
    }

    fn add_tree(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |name: String| prefix.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(path.ident.to_string()), &path.tree),
            UseTree::Name(name) => self.add(&with(name.ident.to_string())),
            UseTree::Rename(name) => self.add(&with(name.ident.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(prefix, tree)),
            UseTree::Glob(_) => self.add(prefix),
        }
    }

    /// Paths in the arguments of a macro, which are not parsed.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut written: Vec<String> = Vec::new();
        let mut n_colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !written.is_empty() => n_colons += 1,
                TokenTree::Ident(name) => {
                    if n_colons != 2 {
                        self.add(&std::mem::take(&mut written));
                    }
                    written.push(name.to_string());
                    n_colons = 0;
                }
                other => {
                    self.add(&std::mem::take(&mut written));
                    n_colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add(&written);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(of_item(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_test_only(of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&written);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        visit::visit_macro(self, item);
        self.add_tokens(item.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(module: &str, source: &str, expected: &[&str]) {
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        let found = used_paths(&syn::parse_file(source).unwrap(), &module);
        let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn paths_are_resolved_from_the_crate_root() {
        for (module, source, expected) in [
            ("m", "use crate::app::App;", &["app::App"][..]),
            ("m", "use crate::{a, b::c, d::{e, f as g}};", &["a", "b::c", "d::e", "d::f"]),
            ("m", "use crate::live::*;", &["live"]),
            ("m", "use super::other::X;", &["other::X"]),
            ("m", "use super::{a, b::C};", &["a", "b::C"]),
            ("m::n", "use super::sibling;", &["m::sibling"]),
            ("m::n", "use super::super::other;", &["other"]),
            ("m::n", "use self::super::sibling;", &["m::sibling"]),
            ("m", "mod inner { use super::super::other; }", &["other"]),
            ("m", "use std::fmt; use self::child::X; use serde::Serialize;", &[]),
            ("m", "// crate::no\n/// [`crate::no`]\nfn f(x: crate::live::L) {}", &["live::L"]),
            ("m", "fn f() { crate::a::g(Vec::<crate::b::T>::new()) }", &["a::g", "b::T"]),
            ("m", "fn f() { let s = \"crate::no\"; println!(\"{}\", crate::yes::x(1)); }", &["yes::x"]),
            ("m", "fn f() { assert!(matches!(x, crate::a::B | super::c::D)) }", &["a::B", "c::D"]),
            ("m", "#[cfg(test)] mod tests { use crate::no; }\n#[cfg(test)] use crate::no;", &[]),
            ("m", "impl X { #[cfg(test)] fn f() { crate::no() } }", &[]),
            ("m", "pub(in crate::m) fn f() {}", &["m"]),
        ] {
            check(module, source, expected);
        }
    }
}
